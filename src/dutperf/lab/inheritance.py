"""What a lab changed of the whole machine, when it goes and another one stays.

Labs find a setting as another has left it, and rely on that. So a lab that goes hands
over what it would set back, and the last one sets back what was there before the first.
"""

from __future__ import annotations

from collections.abc import Sequence

from dutperf.lab.state import ChangedSetting, LabState, StateFile


def hand_over(gone: LabState, heirs: Sequence[tuple[StateFile, LabState]]) -> LabState:
    """Writes to the heirs' files what they set back from now on.

    Returns ``gone`` with what is still its own to set back, now.
    """
    if not heirs:
        return gone
    own: list[ChangedSetting] = []
    states = [state for _, state in heirs]
    for setting in gone.settings:
        heir = _heir_of(setting, states)
        if heir is None:
            own.append(setting)
        else:
            states[heir] = _with(states[heir], setting)
    priorities = (*states[0].priorities, *gone.priorities)
    states[0] = states[0].model_copy(update={"priorities": priorities})
    for (file, before), state in zip(heirs, states, strict=True):
        if state != before:
            file.write(state)
    return gone.model_copy(update={"settings": tuple(own), "priorities": ()})


def _heir_of(setting: ChangedSetting, states: Sequence[LabState]) -> int | None:
    """Who takes it; None: it is set back to what another lab has set, which stays."""
    for number, state in enumerate(states):
        for theirs in state.settings:
            if theirs.path == setting.path:
                return None if theirs.meanwhile == setting.before else number
    return 0


def _with(state: LabState, setting: ChangedSetting) -> LabState:
    """``state`` that sets it back, too: what it changed again to what was before."""
    settings = {theirs.path: theirs for theirs in state.settings}
    theirs = settings.get(setting.path)
    if theirs is None:
        settings[setting.path] = setting
    elif theirs.before == setting.meanwhile:
        changed = theirs.model_copy(update={"before": setting.before})
        settings[setting.path] = changed
    return state.model_copy(update={"settings": tuple(settings.values())})
