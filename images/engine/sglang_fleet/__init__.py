"""A plugin of SGLang. hooks/ has one file per place where it meets SGLang; the rest imports neither SGLang nor torch."""
