from sglang_controllers.api.choices import CHOICES
from sglang_controllers.api.flags import FLAGS
from sglang_controllers.convert.renamed import RENAMED


def test_a_renamed_flag_is_one_that_sglang_has_no_more() -> None:
    assert RENAMED.keys() & FLAGS.keys() == set()


def test_a_replacement_is_a_flag_and_a_value_that_sglang_has() -> None:
    for replacement in RENAMED.values():
        flag, _, value = replacement.partition(" ")
        assert flag in FLAGS
        assert not value or value in CHOICES[flag]
