"""Tells hatchling that the wheel is for one kind of machine and every Python. Runs where `tools/wheel.sh` has put it all together."""
import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Platform(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-linux_{os.environ['ARCH']}"
