"""Was GRPO worth it on the bundled chats? One command runs it all; docs/worth-it.md is made from its results."""
