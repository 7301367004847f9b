from .resnet import ResNet, resnet8
