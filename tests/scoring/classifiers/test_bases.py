"""Base models of others: from a folder or a named hub, and nothing in their files is run."""

import hashlib
import json
import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, T5Config

from scoring.classifiers import recipes
from scoring.classifiers.bases import base_find, bases_folder
from scoring.classifiers.problems import ClassifierError
from scoring.classifiers.weights import base_load, tokenizer_load
from tests.scoring.classifiers.tiny import QUICK, base_make, dataset_make, tokenizer_make

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def refused(code: str, name: str, **more) -> str:
    with pytest.raises(ClassifierError) as caught:
        base_load(base_find(name), labels=2, **more)
    assert caught.value.code == code, str(caught.value)
    return str(caught.value)


def test_a_name_is_a_folder_among_the_bases(folder: Path, settings) -> None:
    settings.HF_ENDPOINT = ""
    kept = base_make(folder / "bases" / "ai-forever--ruBert-base")
    assert base_find("ai-forever/ruBert-base") == kept


@pytest.mark.parametrize("name", ["", "bert", "../../etc/passwd", "a/b/c", "https://example.org/a", "-x/y"])
def test_what_is_no_name(name: str, folder: Path) -> None:
    refused("base_name", name)


def test_missing_weights_say_what_to_do(folder: Path, settings, tmp_path: Path) -> None:
    settings.HF_ENDPOINT = ""
    assert "HF_ENDPOINT" in refused("base_missing", "ai-forever/ruBert-base")
    (tmp_path / "model.safetensors").touch()  # no config.json
    refused("base_missing", str(tmp_path))


def test_pickled_weights_are_converted_once(folder: Path, tmp_path: Path) -> None:
    base = base_make(tmp_path / "pickled", pickled=True)
    plain = base_make(tmp_path / "plain")
    assert not list(base.glob("*.safetensors"))
    with torch.random.fork_rng():
        torch.manual_seed(1)
        first = base_load(base, labels=2)
        torch.manual_seed(1)
        second = base_load(plain, labels=2)
    (converted,) = bases_folder().iterdir()
    assert {path.name for path in converted.iterdir()} >= {"model.safetensors", "config.json"}
    for name, value in first.state_dict().items():
        assert torch.equal(value, second.state_dict()[name]), name
    made = (converted / "model.safetensors").stat().st_mtime_ns
    base_load(base, labels=2)
    assert (converted / "model.safetensors").stat().st_mtime_ns == made


class Payload:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def test_a_pickle_that_runs_something_runs_nothing(folder: Path, tmp_path: Path) -> None:
    base, mark = base_make(tmp_path / "evil", pickled=True), tmp_path / "it-ran"
    torch.save({"x": Payload(mark)}, base / "pytorch_model.bin")
    refused("base_corrupt", str(base))
    (base / "pytorch_model.bin").write_bytes(pickle.dumps(Payload(mark)))
    refused("base_corrupt", str(base))
    assert not mark.exists() and not list(bases_folder().glob("*"))


def test_code_of_others_is_not_run(folder: Path, tmp_path: Path) -> None:
    base, mark = base_make(tmp_path / "custom"), tmp_path / "it-ran"
    (base / "code.py").write_text(f"open({str(mark)!r}, 'w')\nclass C: pass\n")
    config = {"model_type": "own", "auto_map": {"AutoConfig": "code.C", "AutoModelForSequenceClassification": "code.C"}}
    (base / "config.json").write_text(json.dumps(config))
    refused("base_wrong_kind", str(base))
    assert not mark.exists()


def test_wrong_kinds(folder: Path, tmp_path: Path) -> None:
    base = base_make(tmp_path / "t5")
    T5Config().save_pretrained(base)
    assert "t5" in refused("base_wrong_kind", str(base))
    decoder = tmp_path / "gpt"
    GPT2LMHeadModel(GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2)).save_pretrained(decoder)
    with pytest.raises(ClassifierError) as caught:  # it has no tokenizer
        tokenizer_load(decoder)
    assert caught.value.code == "base_wrong_kind"
    tokenizer = tokenizer_make()
    tokenizer.pad_token = None
    tokenizer.save_pretrained(decoder)
    with pytest.raises(ClassifierError, match="pad"):
        tokenizer_load(decoder)


def test_weights_of_another_size(folder: Path, tmp_path: Path) -> None:
    base = base_make(tmp_path / "sized")
    config = json.loads((base / "config.json").read_text())
    (base / "config.json").write_text(json.dumps(config | {"hidden_size": 32}))
    assert "no weights for" in refused("base_wrong_kind", str(base))


@pytest.mark.parametrize("size", [0, 5, 2_000])
def test_damaged_weights(size: int, folder: Path, tmp_path: Path) -> None:
    base = base_make(tmp_path / "damaged")
    path = base / "model.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    refused("base_corrupt", str(base))


# --- a hub -------------------------------------------------------------------------------------------------------


@pytest.fixture
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadingHTTPServer]:
    """Speaks as a hub does: a listing, then each file by its commit."""
    shelf = base_make(tmp_path_factory.mktemp("shelf") / "tiny")
    (shelf / "evil.py").write_text("raise SystemExit")

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            server.seen.append(self.path)
            path = self.path.partition("?")[0]
            if path.startswith("/api/models/our/tiny/tree/"):
                tree = [{"type": "file", "path": one.name, "size": 1, "oid": "0" * 40} for one in shelf.iterdir()]
                return self.answer(200, json.dumps(tree).encode())
            if path.startswith("/api/models/our/tiny"):
                siblings = [{"rfilename": one.name} for one in shelf.iterdir()]
                body = json.dumps({"id": "our/tiny", "sha": COMMIT, "siblings": siblings}).encode()
                return self.answer(200, body)
            file = shelf / path.rpartition("/")[2]
            if path.startswith("/our/tiny/resolve/") and file.is_file():
                return self.answer(200, file.read_bytes())
            return self.answer(404, b"")

        def answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            if status == 404:
                self.send_header("X-Error-Code", "RepoNotFound")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.seen = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.filterwarnings("ignore")  # huggingface_hub leaves its client open
def test_fetched_by_name_from_the_hub_that_is_named(hub: ThreadingHTTPServer, folder: Path, settings) -> None:
    settings.HF_ENDPOINT = f"http://127.0.0.1:{hub.server_port}"
    kept = base_find("our/tiny")
    assert kept == folder / "bases" / "our--tiny" and (kept / "model.safetensors").is_file()
    assert not (kept / "evil.py").exists()
    asked = len(hub.seen)
    model = recipes.train(
        recipes.SHARED,
        dataset_make(40),
        recipes.parameters_of(recipes.SHARED, QUICK | {"epochs": 1}),
        base="our/tiny",
        seed=1,
        progress=lambda done, total: None,
    )
    assert len(model.tasks) == 2 and len(hub.seen) == asked, "it was fetched again"


@pytest.mark.filterwarnings("ignore")
def test_what_the_hub_does_not_have_and_a_hub_that_is_away(hub: ThreadingHTTPServer, folder: Path, settings) -> None:
    settings.HF_ENDPOINT = f"http://127.0.0.1:{hub.server_port}"
    assert settings.HF_ENDPOINT in refused("base_unreachable", "our/other")
    hub.shutdown()
    hub.server_close()
    refused("base_unreachable", "our/tiny")
    assert not (folder / "bases" / "our--tiny").exists()
