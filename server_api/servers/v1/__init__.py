"""The rules of v1 alone (contract 1.4). Only ``http/v1`` imports them, so both go together when v1 goes."""
