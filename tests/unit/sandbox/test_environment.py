import subprocess
from pathlib import Path

from server_api.sandbox import environment


def test_a_shell_reads_back_every_value_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "env"
    values = {"PLAIN": "x", "HARD": 'it\'s $HOME; `id` "quoted"', "KUBECONFIG": "/a b/c:/d"}
    environment.write(path, values)
    script = '. "$1"; for name in PLAIN HARD KUBECONFIG; do printf "%s\\0" "${!name}"; done'
    shown = subprocess.run(["bash", "-c", script, "bash", str(path)], capture_output=True, text=True, check=True)
    assert shown.stdout.split("\0")[:-1] == list(values.values())


def test_the_file_is_replaced_as_a_whole_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "env"
    path.write_text("export OLD=1\n")
    path.chmod(0o644)
    environment.write(path, {"NEW": "2"})
    assert path.read_text() == "export NEW=2\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["env"]
