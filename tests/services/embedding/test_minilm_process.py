"""The process of MiniLM: one for a machine, started by whoever asks, and never waited for longer than agreed."""

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

from app.services.embedding import minilm, minilm_server
from app.services.embedding.embedder import EmbedderUnavailable
from app.services.embedding.minilm import MinilmEmbedder
from tests.patience import PATIENCE_SECONDS, eventually

FAKE = Path(__file__).with_name("fake_minilm.py")


@pytest.fixture
def create(tmp_path: Path) -> Iterator[Callable[[Path], MinilmEmbedder]]:
    """Embedders, which are closed."""
    made = []

    def create_one(folder: Path = tmp_path) -> MinilmEmbedder:
        made.append(MinilmEmbedder(folder, FAKE))
        return made[-1]

    yield create_one
    for each in made:
        each.close()


@pytest.fixture
def embedder(create: Callable[[], MinilmEmbedder]) -> MinilmEmbedder:
    return create()


def position(text: str, embedder: MinilmEmbedder) -> int:
    """The place of the 1 in a text's vector, which is its length."""
    return int(embedder.embed_query(text, PATIENCE_SECONDS).argmax())


def starts(folder: Path) -> list[int]:
    """Ids of the processes that were started."""
    file = folder / "starts"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def has_ended(process_id: int) -> bool:
    """Tell whether a process has ended, perhaps not put away yet."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_texts_become_rows_in_their_order(embedder: MinilmEmbedder) -> None:
    texts = ["x" * length for length in range(1, 150)]

    vectors = embedder.embed_documents(texts, PATIENCE_SECONDS)

    assert vectors.dtype == np.float32
    assert vectors.shape == (149, minilm_server.DIMENSION)
    assert vectors.argmax(axis=1).tolist() == [len(text) for text in texts]
    assert embedder.embed_documents([], PATIENCE_SECONDS).shape == (0, minilm_server.DIMENSION)


def test_a_long_text_is_cut(embedder: MinilmEmbedder) -> None:
    assert position("ü" * 100_000, embedder) == minilm.MAX_CHARACTERS % minilm_server.DIMENSION


def test_only_the_user_of_the_service_may_connect(embedder: MinilmEmbedder, tmp_path: Path) -> None:
    position("first", embedder)

    assert stat.S_IMODE((tmp_path / "minilm.sock").stat().st_mode) == 0o600


def test_workers_that_ask_at_once_share_one_process(create: Callable[[], MinilmEmbedder], tmp_path: Path) -> None:
    workers = [create() for _ in range(4)]

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda worker: position("seven", worker), workers * 2))

    assert found == [5] * 8
    assert len(starts(tmp_path)) == 1


def test_the_folder_may_be_deeper_than_the_path_of_a_socket(
    create: Callable[[Path], MinilmEmbedder], tmp_path: Path
) -> None:
    folder = tmp_path / ("deep" * 30)
    folder.mkdir()

    assert position("four", create(folder)) == 4


def test_a_query_does_not_wait_for_documents(embedder: MinilmEmbedder, tmp_path: Path) -> None:
    (tmp_path / "held").touch()
    with ThreadPoolExecutor() as threads:
        documents = threads.submit(embedder.embed_documents, ["is held"] * 3, PATIENCE_SECONDS)
        eventually((tmp_path / "holding").exists)

        assert position("query", embedder) == 5
        assert not documents.done()

        (tmp_path / "held").unlink()
        assert len(documents.result()) == 3


def test_what_takes_too_long_fails_and_is_not_waited_for(embedder: MinilmEmbedder, tmp_path: Path) -> None:
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


def test_after_a_killed_process_the_next_question_starts_another(
    create: Callable[[], MinilmEmbedder], tmp_path: Path
) -> None:
    first, second = create(), create()
    position("it runs", first)

    os.kill(starts(tmp_path)[0], signal.SIGKILL)

    assert (tmp_path / "minilm.sock").exists()
    assert position("another", second) == 7
    assert position("the same", first) == 8
    assert len(starts(tmp_path)) == 2


def test_a_process_that_is_killed_while_it_works_fails_the_question(embedder: MinilmEmbedder, tmp_path: Path) -> None:
    (tmp_path / "held").touch()
    with ThreadPoolExecutor() as threads:
        query = threads.submit(embedder.embed_query, "is held", PATIENCE_SECONDS)
        eventually((tmp_path / "holding").exists)
        os.kill(starts(tmp_path)[0], signal.SIGKILL)

        with pytest.raises(EmbedderUnavailable):
            query.result()


def test_a_process_that_hangs_fails_questions_in_time_and_is_killed(
    embedder: MinilmEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    position("it runs", embedder)
    (hung,) = starts(tmp_path)
    os.kill(hung, signal.SIGSTOP)

    with pytest.raises(EmbedderUnavailable):
        embedder.embed_query("first", 0.05)
    assert not has_ended(hung)

    monkeypatch.setattr(minilm, "HUNG_SECONDS", 0.0)
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_query("second", 0.05)
    assert position("third", embedder) == 5
    assert has_ended(hung)


def test_a_process_that_greets_again_does_not_hang(
    embedder: MinilmEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    position("it runs", embedder)
    os.kill(starts(tmp_path)[0], signal.SIGSTOP)
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_query("first", 0.05)
    os.kill(starts(tmp_path)[0], signal.SIGCONT)
    position("it goes on", embedder)
    os.kill(starts(tmp_path)[0], signal.SIGSTOP)

    # Since the process was silent for the first time, more has passed than this; since it was again, nothing.
    monkeypatch.setattr(minilm, "HUNG_SECONDS", 0.001)
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_query("second", 0.05)

    os.kill(starts(tmp_path)[0], signal.SIGCONT)
    assert position("third", embedder) == 5
    assert len(starts(tmp_path)) == 1


def test_a_process_that_nobody_needs_ends_and_starts_again(embedder: MinilmEmbedder, tmp_path: Path) -> None:
    (tmp_path / "idle").write_text("0.05")
    position("first", embedder)
    eventually(lambda: has_ended(starts(tmp_path)[0]))

    assert position("second", embedder) == 6
    assert len(starts(tmp_path)) == 2


def test_a_model_that_cannot_be_loaded_is_not_tried_again_at_once(
    embedder: MinilmEmbedder, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken").touch()
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_query("first", 0.05)
    eventually(lambda: starts(tmp_path) and has_ended(starts(tmp_path)[0]))
    for _ in range(3):
        with pytest.raises(EmbedderUnavailable):
            embedder.embed_query("again", 0.05)

    assert len(starts(tmp_path)) == 1
    assert "MiniLM cannot be loaded: it is broken" in capfd.readouterr().err


def test_a_closed_embedder_ends_its_process_and_starts_none(embedder: MinilmEmbedder, tmp_path: Path) -> None:
    position("it runs", embedder)

    embedder.close()
    embedder.close()

    assert has_ended(starts(tmp_path)[0])
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_query("after", 0.05)
    assert len(starts(tmp_path)) == 1


@pytest.mark.slow
def test_the_process_ends_with_a_worker_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import pathlib, sys, time; from app.services.embedding.minilm import MinilmEmbedder;"
        f"MinilmEmbedder(pathlib.Path({str(tmp_path)!r}), pathlib.Path({str(FAKE)!r})).embed_query('x', 100);"
        "print('ready', flush=True); time.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"ready\n"
        worker.kill()

    eventually(lambda: has_ended(starts(tmp_path)[0]))
