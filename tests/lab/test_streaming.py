"""Streams of documents: never whole in memory, the same batches for (seed, step), exact resume, plain errors."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import signal
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from idviz.lab import checkpoint, config, corpus, models, runs, streaming, training
from idviz.lab.config import TrainingConfig
from idviz.lab.streaming import END, Stream
from tests.lab import small
from tests.lab.small import WORDS, assert_same_run, losses

HELD_OUT = 10


def empty_parquet() -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), buffer)
    return buffer.getvalue()


@pytest.fixture(scope="session", autouse=True)
def no_network(tmp_path_factory):
    """What ``datasets`` keeps goes to a folder of the tests, and it may not look at the hub."""
    with pytest.MonkeyPatch.context() as patch:
        import datasets

        patch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("datasets"))
        yield


@pytest.fixture(scope="session")
def documents() -> list[str]:
    dice = random.Random(0)
    return [f"<{n}> " + " ".join(dice.choices(WORDS, k=dice.randint(5, 60))) for n in range(130)]


@pytest.fixture(scope="session")
def files(documents, tmp_path_factory) -> dict[str, str]:
    """The same documents as parquet files in two parts, and as JSON lines, plain and compressed."""
    folder = tmp_path_factory.mktemp("files")
    for name, part in (("a", documents[:70]), ("b", documents[70:])):
        pq.write_table(pa.table({"text": part, "id": [*range(len(part))]}), folder / f"{name}.parquet")
    lines = "".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(documents))
    (folder / "all.jsonl").write_text(lines)
    (folder / "all.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    return {
        "parquet": str(folder / "*.parquet"),
        "jsonl": str(folder / "all.jsonl"),
        "gz": str(folder / "all.jsonl.gz"),
    }


@pytest.fixture
def settings(files) -> TrainingConfig:
    return small.settings(files["parquet"], stream={"held_out": HELD_OUT, "block": 16, "tokenizer_documents": 50})


def an_epoch(stream: Stream) -> list[np.ndarray]:
    """All windows of the first epoch, one by one."""
    found, step = [], 0
    while True:
        rows = stream.batch(step)
        if stream.place()["epoch"]:
            return found
        found, step = [*found, *rows], step + 1


# -- what the batches are ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["parquet", "jsonl", "gz"])
def test_every_kind_of_file_gives_the_same_batches(settings, files, kind):
    stream, other = runs.load_data(settings), runs.load_data(replace(settings, text=files[kind]))
    assert isinstance(other, Stream)
    for step in range(3):
        assert other.batch(step).shape == (4, 33)
        np.testing.assert_array_equal(other.batch(step), stream.batch(step))
    np.testing.assert_array_equal(other.validation, stream.validation)
    assert other.fingerprint == stream.fingerprint


def test_held_out_documents_are_the_first_ones_and_never_trained_on(settings, documents):
    stream = runs.load_data(replace(settings, batch=1))
    decode = stream.tokenizer.decode
    assert decode(stream.validation) == "".join(text + END for text in documents[:HELD_OUT])
    seen = "".join(decode(window) for window in an_epoch(stream))
    assert not any(f"<{n}>" in seen for n in range(HELD_OUT))
    assert "<50>" in seen
    few = Stream(replace(settings, stream=settings.stream | {"tokenizer_documents": 1}))
    text = documents[HELD_OUT] + END
    assert len(few.tokenizer.encode(text)) < len(stream.tokenizer.encode(text))  # it knows that document by heart


def test_an_epoch_has_every_target_once_but_for_the_ends_of_blocks(settings, documents):
    stream = runs.load_data(replace(settings, batch=1))
    encode, length = stream.tokenizer.encode, settings.tokens
    training, expected = documents[HELD_OUT:], Counter()
    for start in range(0, len(training), 16):
        tokens = encode("".join(text + END for text in training[start : start + 16]))
        for n in range(0, len(tokens) - length, length):
            expected[tuple(tokens[n : n + length + 1])] += 1
    found = [tuple(window) for window in an_epoch(stream)]
    assert Counter(found) == expected
    assert found != [*expected]  # shuffled


def test_batches_depend_on_seed_and_step_alone(settings):
    stream = runs.load_data(settings)
    drawn = [stream.batch(step).copy() for step in range(250)]
    assert stream.place()["epoch"] >= 1  # so far that the documents have come round again
    for step in (249, 3, 17, 0):
        np.testing.assert_array_equal(stream.batch(step), drawn[step])
    for step in (5, 6, 200):  # from a place that was kept, in another object
        stream.batch(step - 1)
        other = runs.load_data(settings)
        other.seek(json.loads(json.dumps(stream.place())))
        np.testing.assert_array_equal(other.batch(step), drawn[step])
    assert not np.array_equal(runs.load_data(replace(settings, seed=1)).batch(0), drawn[0])


def test_epochs_are_shuffled_anew(settings):
    run = replace(settings, batch=1, stream=settings.stream | {"block": 1000})
    stream = runs.load_data(run)
    first = an_epoch(stream)
    second = [stream.batch(len(first) + n)[0] for n in range(len(first))]
    assert sorted(map(tuple, second)) == sorted(map(tuple, first))
    assert [*map(tuple, second)] != [*map(tuple, first)]


def test_only_a_block_is_read_and_only_held_out_documents_and_a_block_are_held(settings, monkeypatch):
    """A stream without an end: it can be trained on, because no more is read than a step needs."""

    class Endless:
        def __init__(self, read, start=0):
            self.read, self.start = read, start

        def skip(self, n):
            return Endless(self.read, self.start + n)

        def __iter__(self):
            n = self.start
            while True:
                self.read.append(n)
                yield {"text": f"<{n}> " + "again and again " * 10}
                n += 1

    read: list[int] = []
    monkeypatch.setattr(streaming, "open_rows", lambda text, options: Endless(read))
    stream = Stream(settings)
    assert max(read) == HELD_OUT + 50 - 1  # for the tokenizer
    before = stream.place()["block"]
    for step in range(30):
        del read[:]
        stream.batch(step)
        assert len(read) <= 16 * 2
    assert stream.place()["block"] > before


def test_empty_documents_and_line_ends(settings, tmp_path):
    rows = ["held out\r\nhere", None, "", "\n\n"] + ["word " * 50, None] * 20
    pq.write_table(pa.table({"body": rows}), tmp_path / "some.parquet")
    stream = Stream(replace(settings, text=str(tmp_path / "some.parquet"), stream={"held_out": 4, "column": "body"}))
    assert stream.tokenizer.decode(stream.validation) == "held out\nhere" + END
    assert stream.batch(0).shape == (4, 33)


# -- runs -------------------------------------------------------------------------------------------------------------
def test_resume_in_a_new_process_is_bit_for_bit(settings, tmp_path, monkeypatch):
    straight, halved = tmp_path / "straight", tmp_path / "halved"
    assert training.train(settings, straight, quiet=True).step == 20
    draw = Stream.batch

    def drawn(stream, step):
        if step == 9:
            os.kill(os.getpid(), signal.SIGTERM)
        return draw(stream, step)

    with monkeypatch.context() as patch:
        patch.setattr(Stream, "batch", drawn)
        assert training.train(settings, halved, quiet=True).step == 10
    kept = checkpoint.read_checkpoint(checkpoint.latest(halved / runs.CHECKPOINTS)).state["data"]
    assert kept["step"] == 10
    assert kept["block"] > 0  # past the first block, so that going on has to find its place
    small.resume_in_a_new_process(halved, HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path / "hub"))
    assert_same_run(straight, halved)
    assert losses(straight)[-1] < losses(straight)[0] - 0.5


@pytest.mark.slow
def test_two_processes_share_every_batch_out(settings, tmp_path):
    training.train(settings, tmp_path / "one", quiet=True)
    (tmp_path / "run.toml").write_text(settings.to_toml())
    hub = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub")}
    small.train_in_two_processes(tmp_path / "run.toml", tmp_path / "two", **hub)
    assert json.loads((tmp_path / "two" / runs.RUN).read_text())["processes"] == 2
    np.testing.assert_allclose(losses(tmp_path / "two"), losses(tmp_path / "one"), rtol=2e-6)


def test_a_run_says_where_its_text_is_from_and_refuses_another(settings, files, tmp_path):
    folder = tmp_path / "run"
    training.train(replace(settings, steps=3), folder, quiet=True)
    again = config.load_config(folder / runs.CONFIG)
    assert (again.text, again.stream) == (settings.text, settings.stream)
    about = json.loads((folder / runs.RUN).read_text())
    assert about["training_tokens"] is None
    assert about["validation_tokens"] == len(runs.load_data(settings).validation)
    assert models.load_model(folder).held_out == ()
    toml = folder / runs.CONFIG
    toml.write_text(toml.read_text().replace("block = 16", "block = 17"))
    with pytest.raises(ValueError, match="is no longer the text"):
        training.resume(folder, quiet=True)


# -- errors -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("none.jsonl", None, r"none\.jsonl': no file is there"),
        ("empty.jsonl", b"", r"empty\.jsonl' is empty"),
        ("empty.parquet", empty_parquet(), r"empty\.parquet' is empty"),
        ("bad.jsonl", b'{"text": nope\n', r"bad\.jsonl' cannot be read: JSON parse error"),
        ("bad.parquet", b"PAR1 and no more", r"bad\.parquet' cannot be read: Parquet magic bytes not found"),
        ("other.jsonl", b'{"body": "x", "id": 3}\n', r"has no column 'text' \(stream\.column\); it has body, id"),
        ("numbers.jsonl", b'{"text": 3}\n', r"column 'text' must hold text, not int \(document \d+\)"),
        ("short.jsonl", b'{"text": "a"}\n' * 12, r"no block of 16 \(stream\.block\) has the 33 tokens"),
        ("little.jsonl", b'{"text": "long enough"}\n' * 10, "after the held-out documents"),
        ("blank.jsonl", b'{"text": ""}\n' * 100, "its first 10 documents, has 0 tokens; at least 2 are needed"),
    ],
)
def test_bad_files_are_refused_by_name(settings, tmp_path, name, content, says):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=says):
        training.train(replace(settings, text=str(tmp_path / name)), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def test_a_bad_file_met_on_the_way_is_named_by_then(settings, documents, tmp_path):
    good = "".join(json.dumps({"text": text}) + "\n" for text in documents)
    (tmp_path / "a.jsonl").write_text(good)
    (tmp_path / "b.jsonl").write_text('{"text": nope\n')
    stream = Stream(replace(settings, text=str(tmp_path / "*.jsonl")))
    with pytest.raises(ValueError, match=r"\*\.jsonl' cannot be read: JSON parse error"):
        stream.batch(10**6)
    assert stream.place()["block"] == len(documents[HELD_OUT:]) // 16 - 1  # what came before was used


def test_no_network_is_said_plainly(settings):
    with pytest.raises(ValueError, match=r"'hub:HuggingFaceFW/fineweb-edu' cannot be read: .*; is there a network"):
        runs.load_data(replace(settings, text="hub:HuggingFaceFW/fineweb-edu"))


def test_a_missing_package_is_named_with_its_extra(settings, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ValueError, match=r"needs the package datasets, .*: pip install 'idviz\[scale\]'"):
        runs.load_data(settings)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"stream": {"colum": "x"}}, r"stream: unknown key 'colum' \(value 'x'\); did you mean column\?"),
        ({"stream": {"held_out": 0}}, r"stream\.held_out must be .* 1.*0"),
        ({"stream": {"column": ""}}, r"stream\.column must be a text that is not empty, not ''"),
        ({"stream": {"split": 3}}, r"stream\.split must be a text that is not empty, not 3"),
        ({"stream": "text"}, "stream must be a table, of .* not 'text'"),
        ({"held_out": ["macbeth"]}, r"held_out names documents; for the stream .*, set stream\.held_out instead"),
        ({"text": "plays"}, r"stream is for text = 'hub:…' or \.parquet or \.jsonl files, not for 'plays'"),
        ({"text": "hub:"}, "text must be 'plays', 'python', 'facts', a file, a folder or 'hub:owner/name', not 'hub:'"),
    ],
)
def test_bad_settings_are_refused_by_name(settings, values, says):
    with pytest.raises(ValueError, match=says):
        replace(settings, **values)


def test_paths_start_from_the_configs_folder_and_the_hub_is_no_path(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('text = "data/*.parquet"\n[stream]\ncolumn = "body"\n')
    found = config.load_config(path)
    assert (found.text, found.stream_options.column) == (str(tmp_path / "data" / "*.parquet"), "body")
    path.write_text(replace(found, text="hub:owner/name").to_toml())
    assert config.load_config(path) == replace(found, text="hub:owner/name")
    with pytest.raises(ValueError, match="is a stream, for training alone"):
        corpus.documents("hub:owner/name")


def test_the_example_for_fineweb_edu_is_a_configuration():
    run = config.load_config(Path(config.__file__).parent / "recipes" / "fineweb-edu.toml")
    assert run.text == "hub:HuggingFaceFW/fineweb-edu"
    assert run.scale == "125M"
    assert run.decoder(run.vocabulary).vocabulary == 32_000
    assert run.stream_options.held_out > 200
