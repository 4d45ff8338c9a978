"""The process of a model: one per machine, started by the first caller, and never waited for beyond the timeout."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from app.services.embedding import local
from app.services.embedding.embedder import EmbedderUnavailable
from app.services.embedding.local import MINILM, LocalEmbedder
from tests.patience import PATIENCE_SECONDS, eventually

FAKE = Path(__file__).with_name("fake_local_server.py")


@pytest.fixture
def create(tmp_path: Path) -> Iterator[Callable[[Path], LocalEmbedder]]:
    """Create embedders, and close them at the end."""
    made = []

    def create_one(folder: Path = tmp_path) -> LocalEmbedder:
        made.append(LocalEmbedder(folder, MINILM, FAKE))
        return made[-1]

    yield create_one
    for each in made:
        each.close()


@pytest.fixture
def embedder(create: Callable[[], LocalEmbedder]) -> LocalEmbedder:
    return create()


def position(text: str, embedder: LocalEmbedder) -> int:
    """Return the place of the 1 in a text's vector, which is its length."""
    return int(embedder.embed_query(text, PATIENCE_SECONDS).argmax())


def starts(folder: Path) -> list[int]:
    """Return the IDs of the started processes."""
    file = folder / "starts"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def has_ended(process_id: int) -> bool:
    """Whether a process has ended, even if it has not been reaped yet."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_document_vectors_are_returned_in_the_order_of_the_texts(embedder: LocalEmbedder) -> None:
    texts = ["x" * length for length in range(1, 150)]

    vectors = embedder.embed_documents(texts, PATIENCE_SECONDS)

    assert vectors.dtype == np.float32
    assert vectors.shape == (149, MINILM.dimension)
    assert vectors.argmax(axis=1).tolist() == [len(text) for text in texts]
    assert embedder.embed_documents([], PATIENCE_SECONDS).shape == (0, MINILM.dimension)


def test_long_text_is_truncated_to_the_maximum_length(embedder: LocalEmbedder) -> None:
    assert position("ü" * 100_000, embedder) == local.MAX_CHARACTERS % MINILM.dimension


def test_socket_is_accessible_only_to_the_service_user(embedder: LocalEmbedder, tmp_path: Path) -> None:
    position("first", embedder)

    assert stat.S_IMODE((tmp_path / "minilm.sock").stat().st_mode) == 0o600


def test_concurrent_workers_share_one_process(create: Callable[[], LocalEmbedder], tmp_path: Path) -> None:
    workers = [create() for _ in range(4)]

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda worker: position("seven", worker), workers * 2))

    assert found == [5] * 8
    assert len(starts(tmp_path)) == 1


def test_socket_works_in_a_folder_deeper_than_the_socket_path_limit(
    create: Callable[[Path], LocalEmbedder], tmp_path: Path
) -> None:
    folder = tmp_path / ("deep" * 30)
    folder.mkdir()

    assert position("four", create(folder)) == 4


def test_query_does_not_wait_for_documents_being_embedded(embedder: LocalEmbedder, tmp_path: Path) -> None:
    (tmp_path / "held").touch()
    with ThreadPoolExecutor() as threads:
        documents = threads.submit(embedder.embed_documents, ["is held"] * 3, PATIENCE_SECONDS)
        eventually((tmp_path / "holding").exists)

        assert position("query", embedder) == 5
        assert not documents.done()

        (tmp_path / "held").unlink()
        assert len(documents.result()) == 3


def test_embedding_beyond_its_timeout_raises_and_later_queries_still_work(
    embedder: LocalEmbedder, tmp_path: Path
) -> None:
    position("it runs", embedder)
    (tmp_path / "held").touch()

    with pytest.raises(EmbedderUnavailable):
        embedder.embed_query("is held", 0.05)
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_documents(["is held"], 0.05)
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_query("no time at all", 0.0)

    (tmp_path / "held").unlink()
    assert position("again", embedder) == 5
    assert len(starts(tmp_path)) == 1


def test_query_after_a_killed_process_starts_a_new_process(create: Callable[[], LocalEmbedder], tmp_path: Path) -> None:
    first, second = create(), create()
    position("it runs", first)

    os.kill(starts(tmp_path)[0], signal.SIGKILL)

    assert (tmp_path / "minilm.sock").exists()
    assert position("another", second) == 7
    assert position("the same", first) == 8
    assert len(starts(tmp_path)) == 2


def test_killing_the_process_during_a_query_raises_embedder_unavailable(
    embedder: LocalEmbedder, tmp_path: Path
) -> None:
    (tmp_path / "held").touch()
    with ThreadPoolExecutor() as threads:
        query = threads.submit(embedder.embed_query, "is held", PATIENCE_SECONDS)
        eventually((tmp_path / "holding").exists)
        os.kill(starts(tmp_path)[0], signal.SIGKILL)

        with pytest.raises(EmbedderUnavailable):
            query.result()


def test_hung_process_fails_queries_in_time_and_is_killed_and_replaced(
    embedder: LocalEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    position("it runs", embedder)
    (hung,) = starts(tmp_path)
    os.kill(hung, signal.SIGSTOP)

    with pytest.raises(EmbedderUnavailable):
        embedder.embed_query("first", 0.05)
    assert not has_ended(hung)

    monkeypatch.setattr(local, "HUNG_SECONDS", 0.0)
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_query("second", 0.05)
    assert position("third", embedder) == 5
    assert has_ended(hung)


def test_process_that_responds_again_is_no_longer_treated_as_hung(
    embedder: LocalEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    position("it runs", embedder)
    os.kill(starts(tmp_path)[0], signal.SIGSTOP)
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_query("first", 0.05)
    os.kill(starts(tmp_path)[0], signal.SIGCONT)
    position("it goes on", embedder)
    os.kill(starts(tmp_path)[0], signal.SIGSTOP)

    # More time than this has passed since the first silence, but none since the second.
    monkeypatch.setattr(local, "HUNG_SECONDS", 0.001)
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_query("second", 0.05)

    os.kill(starts(tmp_path)[0], signal.SIGCONT)
    assert position("third", embedder) == 5
    assert len(starts(tmp_path)) == 1


def test_idle_process_exits_and_the_next_query_starts_it_again(embedder: LocalEmbedder, tmp_path: Path) -> None:
    (tmp_path / "idle").write_text("0.05")
    position("first", embedder)
    eventually(lambda: has_ended(starts(tmp_path)[0]))

    assert position("second", embedder) == 6
    assert len(starts(tmp_path)) == 2


def test_model_that_cannot_be_loaded_is_not_retried_immediately(
    embedder: LocalEmbedder, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken").touch()
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_query("first", 0.05)
    eventually(lambda: starts(tmp_path) and has_ended(starts(tmp_path)[0]))
    for _ in range(3):
        with pytest.raises(EmbedderUnavailable):
            embedder.embed_query("again", 0.05)

    assert len(starts(tmp_path)) == 1
    assert "The model of EMBEDDER cannot be loaded: it is broken" in capfd.readouterr().err


def test_closed_embedder_ends_its_process_and_does_not_start_another(embedder: LocalEmbedder, tmp_path: Path) -> None:
    position("it runs", embedder)

    embedder.close()
    embedder.close()

    assert has_ended(starts(tmp_path)[0])
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_query("after", 0.05)
    assert len(starts(tmp_path)) == 1


@pytest.mark.slow
def test_process_ends_when_its_worker_is_killed(tmp_path: Path) -> None:
    program = (
        "import pathlib, sys, time; from app.services.embedding.local import MINILM, LocalEmbedder;"
        f"LocalEmbedder(pathlib.Path({str(tmp_path)!r}), MINILM, pathlib.Path({str(FAKE)!r})).embed_query('x', 100);"
        "print('ready', flush=True); time.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"ready\n"
        worker.kill()

    eventually(lambda: has_ended(starts(tmp_path)[0]))
