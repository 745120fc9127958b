"""`pytest examples/plug_in`: the contract of air_recsys."""

from damped_mean import DampedMean

from air_recsys.testing import ContractTests


class TestDampedMean(ContractTests):
    def make(self) -> DampedMean:
        return DampedMean()
