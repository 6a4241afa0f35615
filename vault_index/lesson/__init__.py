"""A lesson file, bytes <-> `Lesson`. No disk, no git, no index."""
