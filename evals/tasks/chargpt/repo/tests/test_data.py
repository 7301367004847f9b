from chargpt import data, settings


def test_text_survives_encoding():
    alphabet = data.Alphabet("a small boat")
    assert alphabet.decode(alphabet.encode("boat")) == "boat"


def test_targets_are_inputs_shifted_by_one(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("abcdefghij" * 20)
    _, training, validation = data.read(str(path), context=5)
    inputs, targets = training[3]
    assert inputs[1:].tolist() == targets[:-1].tolist()
    assert len(validation) == 20 - 5


def test_command_line_overrides_the_file():
    options = settings.load(["--max-iters", "3", "--compile", "yes"])
    assert (options.max_iters, options.compile, options.width) == (3, True, 128)
