"""A launch command of SGLang becomes a SGLangCluster."""

from sglang_controllers.convert.conversion import Conversion, ConvertError, as_yaml, converted

__all__ = ["Conversion", "ConvertError", "as_yaml", "converted"]
