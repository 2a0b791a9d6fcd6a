"""The commands that train and measure: what they print and write."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time

import torch

from idviz.cli import tables
from idviz.lab import bundling, cards, config, models, recall_study, results, runs, scoring, study, training, tuning
from idviz.lab.studies import Lookups, Tuning
from idviz.words import file_size, share
from tests.cli.running import refused, run, tree
from tests.helpers import measured_results
from tests.lab.small import ENVIRONMENT, RECALL, STUDY, TUNING


def succeeds(*arguments):
    done = run(*arguments)
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done


def test_models_lists_and_adds(tmp_path, small_runs):
    done = succeeds("models", "--add", small_runs["interdomain"], "--name", "mine", "--folder", tmp_path)
    about = models.read_about(tmp_path / "mine")
    row = scoring.score_decoder(small_runs["interdomain"], models.load_model(tmp_path / "mine", device="cpu").decoder)
    assert {key: about[key] for key in bundling.UNITS} == {key: row[key] for key in bundling.UNITS}
    assert about["loss_before_rounding"] == scoring.score_run(small_runs["interdomain"])["loss"]
    assert f"{row['loss']:.3f} nats per token" in done.stdout
    assert (tmp_path / "mine" / cards.CARD).read_text("utf-8") == cards.card("mine", about)
    assert "already" in refused("models", "--add", small_runs["softmax"], "--name", "mine", "--folder", tmp_path)
    assert models.read_about(tmp_path / "mine") == about


def test_a_name_in_brackets_is_printed_as_it_is(tmp_path, small_runs, small_text):
    run_ = shutil.copytree(small_runs["softmax"], tmp_path / "[red]run")
    done = succeeds("length", run_, "--text", small_text, "--contexts", "4", "--targets", "4", "--device", "cpu")
    assert any(line.split()[-2:] == ["[red]run", "unigram"] for line in done.stdout.splitlines())


def test_models_shows_each_with_its_loss(tmp_path, small_runs, monkeypatch):
    monkeypatch.setattr(models, "FOLDER", tmp_path)
    bundling.bundle(small_runs["softmax"], "one", tmp_path, loss=4.321, perplexity_per_token=75.264)
    bundling.bundle(small_runs["interdomain"], "two", tmp_path)
    lines = succeeds("models").stdout.splitlines()
    one, two = (next(line.split() for line in lines if line.startswith(name)) for name in ("one", "two"))
    assert one[1:3] == ["softmax", "words.txt"] and one[4] == "16" and one[7:9] == ["4.321", "75.26"]
    assert two[1] == "interdomain" and two[7:9] == ["–", "–"]
    size = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    assert lines[-1] == f"On disk, all together: {file_size(size)}."
    assert any("nats per token on held-out text; perplexity: per token" in line for line in lines)


def test_evaluate(tmp_path, small_runs, small_text):
    file = tmp_path / "e.json"
    done = succeeds("evaluate", small_runs["interdomain"], "--text", small_text, "--json", file, "--device", "cpu")
    found = results.load_result(file)
    assert f"{found['loss']:.3f} (95 % over windows: {found['interval'][0]:.3f}" in done.stdout
    for said in (
        "perplexity per token",
        "perplexity per word",
        "bits per byte",
        "nats per token",
        "in windows of 16 tokens",
    ):
        assert said in done.stdout
    assert "needles" not in found and found["measured"]["versions"]["torch"] == torch.__version__


def test_evaluate_with_needles(small_runs, small_text):
    done = succeeds("evaluate", small_runs["softmax"], "--text", small_text, "--needle", "--device", "cpu")
    assert "chance" in done.stdout and "1e-05" in done.stdout


def test_length(tmp_path, small_runs, small_text):
    file, made = tmp_path / "length.json", [small_runs["interdomain"], small_runs["softmax"]]
    options = ("--contexts", "4,16,56", "--targets", "40", "--text", small_text, "--seed", "3", "--device", "cpu")
    done = succeeds("length", *made, *options, "--keep", tmp_path / "kept", "--json", file)
    assert len([*(tmp_path / "kept").iterdir()]) == 2
    found = results.load_result(file)
    assert (found["targets"], found["seed"], found["text"]) == (40, 3, "words.txt")
    assert [row["model"] for row in found["models"]] == ["interdomain", "softmax", "unigram"]
    ratio = found["models"][0]["curve"][-1]["ratio"]
    said = (
        f"interdomain: at 56 tokens, 3.5 times its context in training, perplexity is {ratio[0]:.3f} times that at 16"
    )
    assert said in done.stdout
    row = next(line for line in done.stdout.splitlines() if line.split()[:1] == ["16"])
    assert row.count("×1.000") == 3
    assert f"{found['models'][1]['curve'][2]['perplexity']:.2f} ×1.000" in row


def test_ablate_in_two_parts(tmp_path, small_text):
    (tmp_path / "two.toml").write_text(STUDY.format(text=small_text))
    line = ("ablate", tmp_path / "two.toml", "--out", tmp_path / "out")
    assert "part 1/2 is done; once the others are" in succeeds(*line, "--part", "1/2").stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["interdomain-0", "interdomain-3"]
    done = succeeds(*line, "--part", "2/2")
    found = results.load_result(tmp_path / "out" / "two.json")
    assert found["title"] == "Two mixers" and len(found["rows"]) == 4
    summary = found["summary"]["softmax"]
    row = next(line for line in done.stdout.splitlines() if line.startswith("softmax"))
    assert f"{summary['loss']:.3f} ± {summary['spread']:.3f}" in row
    low, high = summary["interval"]
    assert f"{summary['difference']:+.3f}   {low:+.3f} to {high:+.3f}" in row and summary["method"] in row
    assert "What the variants differ in" in done.stdout and "short convolution" in done.stdout
    before = tree(tmp_path / "out")
    again = succeeds(*line, "--json", tmp_path / "again.json")
    assert again.stdout == done.stdout and tree(tmp_path / "out") == before
    assert results.load_result(tmp_path / "again.json")["summary"] == found["summary"]


def test_ablate_says_when_it_was_stopped(tmp_path, small_text, monkeypatch):
    (tmp_path / "two.toml").write_text(STUDY.format(text=small_text))
    loss_of, out = training.loss_of, tmp_path / "out"
    asked = iter([True])

    def stopping(*arguments):
        if next(asked, False):
            os.kill(os.getpid(), signal.SIGINT)
        return loss_of(*arguments)

    monkeypatch.setattr(training, "loss_of", stopping)
    stopped = run("ablate", tmp_path / "two.toml", "--out", out)
    assert stopped.exit_code == 130 and "stopped and saved; the same command continues" in stopped.stdout
    assert (out / "interdomain-0" / runs.CHECKPOINTS / "step-00000001").is_dir() and not (out / "two.json").exists()
    assert "Two mixers" in succeeds("ablate", tmp_path / "two.toml", "--out", out).stdout


def test_tune_in_two_parts(tmp_path, small_text):
    (tmp_path / "two.toml").write_text(TUNING.format(text=small_text))
    line, out = ("tune", tmp_path / "two.toml", "--out", tmp_path / "out", "--device", "cpu"), tmp_path / "out"
    done = succeeds(*line, "--part", "1/2")
    assert "part 1/2 is done as far as it goes: rung 1 of interdomain lacks 1 trial; once the other" in done.stdout
    assert "interdomain, rung 1 of 2, trial 1: learning_rate 0.001, step_range" in done.stderr
    assert "rung 2 of interdomain lacks 1 trial" in succeeds(*line, "--part", "2/2").stdout
    assert not (out / "two.json").exists()
    done, found = succeeds(*line), results.load_result(out / "two.json")
    tuned = Tuning.from_result(found)
    assert len(found["rows"]) == 10 and tuned.title == "Two mixers tuned" and found["measured"]["device"] == "CPU"
    row = next(line for line in done.stdout.splitlines() if line.startswith("softmax"))
    best, second = tuned.best("softmax"), tuned.runner_up("softmax")
    rates = [f"learning_rate {trial.settings['learning_rate']}" for trial in (best, second)]
    assert 0 < row.find(rates[0]) < row.find(f"{second.loss:.3f}: {rates[1]}")
    assert row.split()[-4:-2] == ["3", "0.0"] and row.rstrip().endswith(f"{best.loss:.3f}")
    assert "loss: nats per token on development documents" in done.stdout
    assert "for 2 steps, the best of them for 4 steps." in done.stdout
    assert ("softmax: learning_rate at the end of what was tried" in done.stdout) == bool(tuned.at_the_end("softmax"))
    before = tree(out)
    again = succeeds(*line, "--json", tmp_path / "again.json")
    assert again.stdout == done.stdout and tree(out) == before


def test_tune_says_when_it_was_stopped(tmp_path, small_text, monkeypatch):
    (tmp_path / "two.toml").write_text(TUNING.format(text=small_text))
    loss_of, out = training.loss_of, tmp_path / "out"
    asked = iter([True])

    def stopping(*arguments):
        if next(asked, False):
            os.kill(os.getpid(), signal.SIGTERM)
        return loss_of(*arguments)

    monkeypatch.setattr(training, "loss_of", stopping)
    stopped = run("tune", tmp_path / "two.toml", "--out", out)
    assert stopped.exit_code == 130 and "stopped and saved; the same command continues" in stopped.stdout
    trial = out / "interdomain" / "rung-1" / "trial-1"
    assert (trial / runs.CHECKPOINTS / "step-00000001").is_dir() and not (trial / tuning.TRIAL).exists()


def test_recall(tmp_path):
    (tmp_path / "two.toml").write_text(RECALL)
    line = ("recall", tmp_path / "two.toml", "--out", tmp_path / "out", "--device", "cpu")
    assert "part 2/3 is done" in succeeds(*line, "--part", "2/3").stdout
    done = succeeds(*line, "--json", tmp_path / "recall.json")
    found = results.load_result(tmp_path / "recall.json")
    assert [row["variant"] for row in found["rows"]] == ["interdomain", "softmax"] * 2
    answers = [a for row in found["rows"] if row["variant"] == "softmax" for a in row["answers"]]
    cell = [a["accuracy"] for a in answers if (a["split"], a["pairs"], a["distance"]) == ("held-out", 2, 0)]
    row = next(line for line in done.stdout.splitlines() if line.startswith("softmax"))
    assert row.split()[1] == "2" and row.rstrip().endswith(f"{100 * sum(cell) / 2:.1f} %")
    chance = next(line for line in done.stdout.splitlines() if line.startswith("chance"))
    assert chance.split()[1:] == ["12.5", "%", "12.5", "%"]
    assert "trained on 1, 2 pairs" in done.stdout


def test_recall_stopped_by_ctrl_c_keeps_what_is_finished(tmp_path, monkeypatch):
    (tmp_path / "two.toml").write_text(RECALL)
    learn, done = recall_study.learn, []

    def stopping(*arguments, **options):
        if done:
            raise KeyboardInterrupt
        done.append(1)
        return learn(*arguments, **options)

    monkeypatch.setattr(recall_study, "learn", stopping)
    assert "stopped" in refused("recall", tmp_path / "two.toml", "--out", tmp_path / "out", code=130)
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["interdomain-0.json"]


def test_a_loss_that_is_not_finite_is_exit_code_1(tmp_path, monkeypatch):
    (tmp_path / "two.toml").write_text(RECALL)
    monkeypatch.setattr(recall_study, "recall_loss", lambda logits, labels: logits.sum() * float("nan"))
    assert "step 1: the loss is nan" in refused("recall", tmp_path / "two.toml", "--out", tmp_path / "out", code=1)
    assert list((tmp_path / "out").iterdir()) == []


def test_generate_streams_what_the_decoder_makes(small_runs):
    model = models.load_model(small_runs["interdomain"], device="cpu")
    prompt, options = "when shall ", {"temperature": 1.5, "seed": 4}
    tokens = [*model.decoder.generate(model.tokenizer.encode(prompt), 60, **options)]
    line = ("generate", small_runs["interdomain"], "--prompt", prompt, "--tokens", 60, "--device", "cpu")
    done = succeeds(*line, "--temperature", 1.5, "--seed", 4)
    assert done.stdout == prompt + model.tokenizer.decode(tokens) + "\n"
    assert "\ufffd" in done.stdout  # so hot that it makes broken characters, too
    state = 4 * model.decoder.state_size(1) / 1000
    assert f"state: {state:,.0f} kB after any number of tokens" in done.stderr and "tokens/s" in done.stderr
    assert succeeds(*line, "--temperature", 0).stdout == succeeds(*line, "--top-k", 1, "--seed", 9).stdout
    softmax = succeeds("generate", small_runs["softmax"], "--tokens", 3, "--prompt", "w", "--device", "cpu")
    assert f"after 4 tokens: {4 * 2 * 4 * 32 * 2 / 1000:,.0f} kB, and it grows" in softmax.stderr
    assert succeeds("generate", small_runs["softmax"], "--tokens", 0, "--prompt", "w").stdout == "w\n"


def test_generate_waits_for_the_whole_character(small_runs, monkeypatch):
    model = models.load_model(small_runs["softmax"], device="cpu")
    text = "ü 🙂 €!"
    tokens = model.tokenizer.encode(text)
    assert len(tokens) > len(text)  # no merges for these: every byte is a token
    monkeypatch.setattr(type(model.decoder), "generate", lambda *a, **b: iter(tokens.tolist()))
    assert succeeds("generate", small_runs["softmax"], "--prompt", "w", "--tokens", len(tokens)).stdout == f"w{text}\n"


def test_generate_stopped_by_ctrl_c(small_runs, monkeypatch):
    def stopping(*arguments, **options):
        yield 33
        raise KeyboardInterrupt

    monkeypatch.setattr("idviz.learned.decoder.generate", stopping)
    done = run("generate", small_runs["softmax"], "--prompt", "w")
    assert done.exit_code == 130 and done.stdout.startswith("w") and "stopped" in done.stderr


def test_cost(tmp_path, small_runs):
    file = tmp_path / "cost.json"
    made = (small_runs["softmax"], small_runs["interdomain"])
    done = succeeds("cost", *made, "--positions", "20,10", "--json", file, "--device", "cpu")
    found = results.load_result(file)
    assert [row["model"] for row in found["rows"]] == ["softmax", "interdomain"]
    assert [place["position"] for place in found["rows"][0]["decode"]] == [10, 20]
    assert (found["rows"][0]["batch"], found["rows"][0]["tokens"]) == (16, 256)
    assert f"{found['rows'][1]['training_tokens_per_second']:,.0f}" in done.stdout
    assert "Milliseconds for one more token" in done.stdout and "after 20" in done.stdout


def test_train_takes_a_recipe_by_its_bare_name(tmp_path, monkeypatch):
    asked = []

    def trained(settings, out):
        asked.append((settings, out))
        return training.Outcome(out, 3, 12, True, 1.0)

    monkeypatch.setattr(training, "train", trained)
    done = succeeds("train", "tiny", "--out", tmp_path / "run", "--device", "cpu")
    [(settings, out)] = asked
    assert settings == config.TrainingConfig(**config.load_config(study.recipe("tiny")).to_dict() | {"device": "cpu"})
    assert out == tmp_path / "run" and "stopped and saved: step 3, 12 tokens seen" in done.stdout


def test_ctrl_c_while_measuring_is_130_without_a_traceback(tmp_path, small_runs, small_text):
    code = "import signal, time; from idviz.lab import lengths; from idviz.cli import main\n"
    code += "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a background job's child ignores it
    code += "lengths.length_curve = lambda *a, **b: (print('on', flush=True), time.sleep(60))\nmain()"
    arguments = ["length", str(small_runs["softmax"]), "--text", str(small_text), "--contexts", "4", "--targets", "4"]
    arguments += ["--json", str(tmp_path / "x.json")]
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline() == "on\n"
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=50)[1]
        finally:
            process.kill()
    assert process.returncode == 130 and "Traceback" not in said and "idviz: stopped" in said
    assert not (tmp_path / "x.json").exists()


def test_what_is_piped_away_is_no_error(small_runs):
    command = f"'{sys.executable}' -m idviz generate '{small_runs['softmax']}' --tokens 3000 --prompt w | head -c 1"
    done = subprocess.run(["bash", "-c", command], env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert done.stdout == "w" and "Traceback" not in done.stderr


def test_lookup_says_where_the_weights_land(tmp_path):
    succeeds("train", "quick-facts", "--out", tmp_path / "facts", "--device", "cpu")
    file = tmp_path / "lookup.json"
    done = succeeds("lookup", tmp_path / "facts", "--texts", "20", "--json", file, "--device", "cpu")
    found = Lookups.from_result(results.load_result(file))
    [row] = found.models
    assert found.texts == 20 and len(row.heads) == 4
    assert f"{share(row.right / 20)} of 20 repeated facts answered right" in done.stdout
    assert (
        f"Layer {row.chosen.layer}, head {row.chosen.head}, memory 1/Δ of {row.chosen.memory:.1f} tokens" in done.stdout
    )
    [line] = [line.split("  ") for line in done.stdout.splitlines() if line.startswith("within the memory")]
    counts = row.chosen.measured.within
    assert [part.strip() for part in line if part.strip()][1:] == [
        f"{counts.texts}",
        *(share(part / counts.texts) for part in (counts.object, counts.mixed, counts.sentence, counts.said)),
    ]


def test_lookup_of_s4d_says_that_there_is_no_query(capsys):
    tables.lookup(measured_results.lookup())
    said = capsys.readouterr().out
    assert "s4d-facts: 45 % of 200 repeated facts answered right." in said
    assert "Its weights on tokens do not depend on the query" in said
