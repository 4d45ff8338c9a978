"""Text for engines that cannot use their own analysis: tokenizer, normalizer, highlighter."""
