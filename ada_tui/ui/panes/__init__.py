"""The pages of the one main screen: review, train, export, help."""
