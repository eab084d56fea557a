"""Streams: tables as their source and as their sink. The doors are `anabranch._api.streams`."""
