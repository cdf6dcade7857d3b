"""Many sparse systems at once: of one pattern, or each of its own."""
