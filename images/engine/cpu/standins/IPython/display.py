"""The two names that sglang.utils imports."""


def display(*_objects: object, **_options: object) -> None:
    raise RuntimeError("IPython is not in this environment")


HTML = display
