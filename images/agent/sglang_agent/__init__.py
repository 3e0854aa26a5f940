"""The sidecar of an SGLang engine: says when it is ready, and drains it before it stops."""
