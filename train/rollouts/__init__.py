"""How experience is gathered and kept: env runners, fragments, advantages, replay."""
