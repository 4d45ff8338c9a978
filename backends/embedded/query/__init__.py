"""From what was typed to a ranked query of tantivy."""
