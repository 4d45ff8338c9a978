"""Adds README.md and docs/, which the service shows, to the wheel. pyproject.toml has everything else."""

from __future__ import annotations

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


def documentation() -> list[str]:
    """Return the files that ``app.documentation`` reads."""
    docs = Path("docs")
    return ["README.md", *(str(path) for path in sorted([*docs.glob("*.md"), *docs.glob("images/*.png")]))]


class BuildWithDocumentation(build_py):
    """Builds the packages, and copies the documentation into one of them."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:  # The documentation is read from the source folder.
            return
        for name in documentation():
            target = Path(self.build_lib, "app", "_documentation", name)
            self.mkpath(str(target.parent))
            self.copy_file(name, str(target))

    def get_source_files(self) -> list[str]:
        """Return the files that a source distribution needs to build a wheel."""
        return [*super().get_source_files(), *documentation()]


setup(cmdclass={"build_py": BuildWithDocumentation})
