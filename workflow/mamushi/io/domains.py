"""The words of the examples table: the two domains and the three sections."""

FORGET, RETAIN = "forget", "retain"
DOMAINS = (FORGET, RETAIN)
CONTAMINATION, INFERENCE, EVALUATION = "contamination", "inference", "evaluation"
SECTIONS = (CONTAMINATION, INFERENCE, EVALUATION)
