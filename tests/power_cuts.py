"""A training that is cut short: a callback that raises."""


class PowerCut(Exception):
    """What no training catches."""


def cut_at(epoch):
    """Return a callback that raises at the first record of that epoch or a later one."""

    def cut(record):
        if record.epoch >= epoch:
            raise PowerCut

    return cut
