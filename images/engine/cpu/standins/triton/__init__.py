"""Stands in for triton on a host without a GPU: kernels can be defined, none can run.

sglang, torch and xgrammar define triton kernels when they are imported. They take their CPU branch when there is no
active driver, so it is enough that every name exists, that decorators return something, and that types can be used in
annotations and isinstance(). The real package is 690 MB.
"""

import importlib.abc
import importlib.machinery
import sys
import types

__version__ = "3.0.0"


class Placeholder:
    """Callable, subscriptable, iterable, and a decorator with or without arguments."""

    def __init__(self, name="triton"):
        self.__name__ = self.__qualname__ = name

    def __call__(self, *args, **options):
        if len(args) == 1 and not options and isinstance(args[0], (types.FunctionType, type)):
            return args[0]
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = _made_up(name)
        setattr(self, name, value)
        return value

    def __getitem__(self, _index):
        return self

    def __iter__(self):
        return iter(())

    def __or__(self, _other):
        return self

    __ror__ = __or__

    def __mro_entries__(self, _bases):
        return (object,)


class JITFunction:
    """A kernel that was defined; running it is an error."""

    def __init__(self, function):
        self.fn = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__

    def __getitem__(self, _grid):
        return self

    def __call__(self, *_args, **_options):
        raise RuntimeError(f"triton kernel {self.__name__} cannot run: this host has no GPU")


def jit(function=None, **_options):
    return JITFunction(function) if function else JITFunction


def autotune(*_args, **_options):
    return lambda function: function


heuristics = autotune


def cdiv(a, b):
    return -(-a // b)


def next_power_of_2(n):
    return 1 << max(n - 1, 0).bit_length()


class Config:
    def __init__(self, kwargs=None, **options):
        self.kwargs = kwargs or {}
        self.__dict__.update(options)


class OutOfResources(Exception):
    pass


class _NoDriver:
    """Callers catch this error and take their CPU branch."""

    @property
    def active(self):
        raise RuntimeError("0 active drivers: this host has no GPU")


driver = _NoDriver()


def _made_up(name):
    """A class for a CamelCase name, which may be a base class or stand in isinstance(); else a placeholder."""
    return type(name, (), {}) if name[:1].isupper() else Placeholder(name)


def _submodule(name):
    module = types.ModuleType(name)
    module.__path__ = []

    def attribute(wanted):
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        known = sys.modules[__name__].__dict__.get(wanted)
        return known or module.__dict__.setdefault(wanted, _made_up(wanted))

    module.__getattr__ = attribute
    return module


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Every triton.* module exists."""

    def find_spec(self, name, path=None, target=None):
        if name.startswith(f"{__name__}."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _submodule(spec.name)

    def exec_module(self, module):
        """Nothing to run: the module answers for any name."""


sys.meta_path.insert(0, _Finder())
# Real triton imports these itself, and its users rely on that.
import triton.backends  # noqa: E402
import triton.compiler  # noqa: E402
import triton.language  # noqa: E402
import triton.runtime  # noqa: E402
import triton.testing  # noqa: E402
import triton.tools  # noqa: E402, F401


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return globals().setdefault(name, _made_up(name))
