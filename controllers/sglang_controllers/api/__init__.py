"""The API `sglang.dev/v1alpha1`: typed specs, their rules, and the CRD generated from them."""

from sglang_controllers.api.problems import InvalidSpec, parse_spec
from sglang_controllers.api.spec import ClusterSpec

__all__ = ["ClusterSpec", "InvalidSpec", "parse_spec"]
