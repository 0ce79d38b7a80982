"""How experience is collected and stored: env runners, fragments, advantages, replay."""
