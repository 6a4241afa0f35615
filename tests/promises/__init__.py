"""What the whole product promises."""
