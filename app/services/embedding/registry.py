"""The choice of the embedder by the setting EMBEDDER."""

from __future__ import annotations

from importlib.util import find_spec

from app.config import ConfigurationError, Settings
from app.services.embedding.embedder import Embedder, GuardedEmbedder
from app.services.embedding.minilm_server import MODEL, TOKENIZER

REMOTE_PACKAGES = ("numpy",)
"""Import names of the packages of the extra ``embeddings``."""
MINILM_PACKAGES = (MODEL.package, TOKENIZER.package, "onnxruntime", "tokenizers", "numpy")
"""Import names of the packages of the extra ``minilm``."""


def create_embedder(settings: Settings) -> Embedder | None:
    """Create the embedder that the setting EMBEDDER selects; ``None`` if it is empty. Opens no files or sockets.

    Raises:
        ConfigurationError: The embedder's packages are not installed.
    """
    if not settings.embedder:
        return None
    if settings.embedder == "minilm":
        _require("minilm", MINILM_PACKAGES)
        from app.services.embedding.minilm import MinilmEmbedder

        return GuardedEmbedder(MinilmEmbedder(settings.data_path))
    _require("embeddings", REMOTE_PACKAGES)
    from app.services.embedding.remote import RemoteEmbedder

    return GuardedEmbedder(RemoteEmbedder(settings.embedder, settings.embedder_model, settings.embedder_key))


def _require(extra: str, packages: tuple[str, ...]) -> None:
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"EMBEDDER requires the extra {extra}, such as `pip install 'site-search-service[{extra}]'`: "
            f"{', '.join(missing)} cannot be found."
        )
