from setuptools import find_packages, setup

setup(name="gcn", version="0.1", packages=find_packages(exclude=["tests"]), install_requires=["torch", "numpy"])
