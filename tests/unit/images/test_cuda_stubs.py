import pytest

from images.engine.cpu import cuda_stubs
from images.engine.cpu.cuda_stubs import Symbol


def symbol(name: str, version: str = "", kind: str = "FUNC", size_bytes: int = 0) -> Symbol:
    return Symbol(name, version, kind, size_bytes, weak=False, defined=True)


def wanted(*symbols: Symbol) -> dict[str, Symbol]:
    return {entry.name: entry for entry in symbols}


def test_a_stubbed_function_names_itself_and_aborts() -> None:
    source = cuda_stubs.c_source(wanted(symbol("cuptiSubscribe")))

    assert '__asm__("cuptiSubscribe")' in source
    assert 'fputs("CUDA stub called: cuptiSubscribe\\n", stderr); abort();' in source


@pytest.mark.parametrize(
    ("size_bytes", "room"), [pytest.param(4, 16, id="small"), pytest.param(80, 80, id="large")]
)
def test_stubbed_data_has_the_room_of_the_real_one(size_bytes: int, room: int) -> None:
    source = cuda_stubs.c_source(wanted(symbol("table", kind="OBJECT", size_bytes=size_bytes)))

    assert f'[{room}] __asm__("table")' in source


def test_a_stubbed_type_keeps_its_name() -> None:
    source = cuda_stubs.c_source(wanted(symbol("_ZTIN4c10d3FooE", kind="OBJECT")))

    assert '"N4c10d3FooE"' in source


def test_functions_called_at_import_get_an_answer() -> None:
    source = cuda_stubs.c_source(
        wanted(symbol(cuda_stubs.GIL_CHECKER), symbol(cuda_stubs.NCCL_OPTIONS))
    )

    assert "abort" not in source


def test_the_source_does_not_depend_on_the_order_of_symbols() -> None:
    one, other = symbol("a"), symbol("b")

    assert cuda_stubs.c_source(wanted(one, other)) == cuda_stubs.c_source(wanted(other, one))


def test_symbols_are_exported_with_the_version_that_was_asked_for() -> None:
    script = cuda_stubs.version_script(
        wanted(symbol("b", "libfoo.so.2"), symbol("a", "libfoo.so.2"), symbol("plain"))
    )

    assert script == "libfoo.so.2 { global: a; b; };\n"


def test_symbols_without_a_version_need_no_version_script() -> None:
    assert cuda_stubs.version_script(wanted(symbol("plain"))) == ""
