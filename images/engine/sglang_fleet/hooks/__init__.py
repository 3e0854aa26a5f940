"""Where the plugin meets SGLang: one file per seam."""
