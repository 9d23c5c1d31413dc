"""The addresses of a project that is not the bundled one, with the console somewhere among them."""
