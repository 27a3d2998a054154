"""What models are asked: a module for each question, with its ``answer``."""
