"""Streams: tables as their source and as their sink. The public API is in `anabranch._api.streams`."""
