"""Settings of the whole machine, with files of our own in place of the kernel's."""

from __future__ import annotations

from pathlib import Path

import pytest

from dutperf.errors import SetupError
from dutperf.lab.machine import change_settings, restore_settings, settings_to_raise
from dutperf.lab.state import ChangedSetting

LEAST = 5000


@pytest.fixture
def limit(tmp_path: Path) -> Path:
    path = tmp_path / "limit"
    path.write_text("1024\n")
    return path


def test_a_setting_is_raised_and_set_back(limit: Path) -> None:
    settings = settings_to_raise([limit], LEAST)
    assert limit.read_text() == "1024\n"
    change_settings(settings)
    assert limit.read_text() == "5000\n"
    restore_settings(settings)
    assert limit.read_text() == "1024\n"


@pytest.mark.parametrize("value", [LEAST, LEAST + 1])
def test_a_setting_that_is_high_enough_is_left_alone(limit: Path, value: int) -> None:
    limit.write_text(f"{value}\n")
    assert settings_to_raise([limit], LEAST) == ()


def test_a_setting_that_this_machine_does_not_show_is_left_out(tmp_path: Path) -> None:
    assert settings_to_raise([tmp_path / "none"], LEAST) == ()


def test_what_somebody_changed_meanwhile_stays(limit: Path) -> None:
    settings = settings_to_raise([limit], LEAST)
    change_settings(settings)
    limit.write_text("9000\n")
    restore_settings(settings)
    assert limit.read_text() == "9000\n"


def test_a_setting_on_record_that_was_never_raised_stays(limit: Path) -> None:
    restore_settings(settings_to_raise([limit], LEAST))
    assert limit.read_text() == "1024\n"


def test_a_setting_that_is_gone_does_not_keep_the_lab_up(tmp_path: Path) -> None:
    gone = ChangedSetting(path=tmp_path / "none", before=1, meanwhile=2)
    restore_settings([gone])
    assert not gone.path.exists()


def test_a_setting_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none" / "limit"
    with pytest.raises(SetupError, match=str(path)):
        change_settings([ChangedSetting(path=path, before=1, meanwhile=2)])
