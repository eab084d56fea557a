"""Removes credentials from locations wherever these are shown or stored.

Knows URLs and which of their parts are credentials: user names and passwords before a host, signatures and tokens after
a question mark or number sign. Guarantee: `without_secrets` is the only spelling of locations in messages, log records,
table logs, catalogs and representations; a location without a secret is unchanged. The time is linear in the text's
length: a pattern that fails at one place does not scan the same text again.

It is in the lowest package because every error uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

_REST = r"[^\s'\"`<>]*(?:\s+[?&#;]\s*[\w.%-]+=[^\s'\"`<>]*)*"
"""The text after the slashes: up to a blank or quote, and further parameters after blanks."""
_URL = re.compile(rf"(?<![\w/.+-])(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<slashes>/++)(?P<rest>{_REST})")
_WHOLE_URL = re.compile(_URL.pattern.replace(_REST, ".*"), re.DOTALL)
_URL_WITHOUT_SCHEME = re.compile(rf"(?<![\w:/.+-])(?P<scheme>)(?P<slashes>//)(?P<rest>(?=[^\s/]*[:@]){_REST})")
"""A URL without a scheme: ``//user:password@host``."""
_URL_IN_PATH = re.compile(
    r"(?<![A-Za-z+.-])(?P<scheme>s3[an]?|gs|az|azure|adl|abfss?|wasbs?|https?|(?:web)?hdfs|oss|ftp|memory)"
    r":(?P<slashes>/++)(?P<rest>[^\s/:@]*:[^\s@]*@)",
    re.IGNORECASE,
)
"""A URL with a password in the middle of a path, from a user who took a URL for a path: up to its first ``@``."""
_RUN = re.compile(r"[^\s'\"`<>]+")
_CONTAINERS = frozenset({"abfs", "abfss", "wasb", "wasbs"})
"""URL schemes where the part before ``@`` is a container and not a user."""
_PORT = re.compile(r"(?:\[[0-9A-Fa-f:.%]*\]|[^:]*)(?::\d*)?")
_NAMES = (
    r"sig|signature|token|secret|pass|pwd|pw(?-i:(?![a-z]))|key|cred|auth|sas|session|jwt|bearer|delegation|assertion|ticket"
    r"|cookie|refresh|conn(?:ection)?[\s_.-]*str"
)
_KEY = re.compile(rf"(?:{_NAMES}|code$)", re.IGNORECASE)
_SIGN = r"%3F|%23|%26|%3B"
_PARAMETER = re.compile(
    rf"(?P<sign>[?#&;]|{_SIGN})\s*(?:(?P<key>[\w.%-]+?)(?:=|%3D)|[\w.%-]*(?=(?:{_SIGN})(?![\w.%-]))|[\w.%-]*+)",
    re.ASCII | re.IGNORECASE,
)
"""A parameter; text without a key is skipped as far as no parameter begins in it."""
_MAX_ENCODINGS = 3
"""Maximum number of times that the name of a parameter may be percent-encoded."""
_TAGS = (
    r"AWSAccessKeyId|SignatureProvided|StringToSign|StringToSignBytes|CanonicalRequest|CanonicalRequestBytes"
    r"|Token(?:-\d+)?|SecurityToken|X-Amz-Security-Token"
)
_OPENING, _CLOSING = re.compile(f"<({_TAGS})>"), re.compile(f"</({_TAGS})>")
"""Tags around the parts of a refused request that S3 repeats."""


def without_secrets(text: str) -> str:
    """A text whose URLs have no user, password, signature or token.

    A path without a scheme, or with ``file:``, holds no secret unless it contains a URL.

    Example:
        >>> without_secrets("s3://KEY:SECRET@lake/t is gone; see https://host/t?sig=abc")
        's3://lake/t is gone; see https://host/t'
    """
    text = _without_answers(text) if "</" in text else text
    if "//" not in text and ":/" not in text:
        return text
    whole = _WHOLE_URL.fullmatch(text)
    is_one = whole is not None and not any(sign in text for sign in "'\"`")
    if whole is not None and is_one and (_URL.fullmatch(text) or "@" in whole["rest"]):
        return _redact_url(**whole.groupdict())
    return _without_passwords(_URL_WITHOUT_SCHEME.sub(_redact_match, _URL.sub(_redact_match, text)))


def without_user(url: str) -> str:
    """A URL without user and password; a container before the host stays."""
    match = _WHOLE_URL.fullmatch(url)
    if match is None or match["scheme"].lower() == "file":
        return url
    return f"{match['scheme']}:{match['slashes']}{_without_user(match['scheme'].lower(), match['rest'])}"


def is_ambiguous(url: str) -> bool:
    """Whether it is unclear where a URL's password ends, because a slash and another ``@`` follow."""
    match = _WHOLE_URL.fullmatch(url)
    authority, _, path = match["rest"].partition("/") if match is not None else ("", "", "")
    user, at, host = authority.rpartition("@")
    return path.count("@") > (0 if at else 1) and ":" in (user if at else host) and _PORT.fullmatch(authority) is None


def without_values(text: str, options: Mapping[str, object] | Iterable[tuple[str, object]]) -> str:
    """A text without the values of those options whose names are names of secrets."""
    pairs = options.items() if isinstance(options, Mapping) else options
    return without_texts(text, (str(value) for key, value in pairs if value and is_secret(key)))


def without_texts(text: str, secrets: Iterable[str]) -> str:
    """A text without these secrets, however URLs, JSON and programs spell their letters.

    Example:
        >>> without_texts("is token=a%2bb or a+b good?", ["a+b"])
        'is token=*** or *** good?'
    """
    for secret in secrets:
        if secret:
            text = re.sub("".join(map(_spellings, secret)), "***", text, flags=re.IGNORECASE)
    return text


def is_secret(key: str) -> bool:
    """Whether an option or URL parameter, perhaps percent-encoded, has the name of a secret."""
    for _ in range(_MAX_ENCODINGS):
        key = unquote(key)
    return _KEY.search(key) is not None


def _spellings(letter: str) -> str:
    """A pattern of all spellings of a letter."""
    number = f"0{{0,8}}{ord(letter):x}"
    percent = "".join(f"%(?:25){{0,8}}{byte:02x}" for byte in letter.encode("utf-8", "surrogatepass"))
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    json = "".join(rf"\\{{1,8}}u{units[at : at + 4]}" for at in range(0, len(units), 4))
    rust = rf"\\{{1,8}}(?:u\{{{number}\}}|x{number})"
    blank = r"|\+" if letter == " " else ""
    return rf"(?:{percent}|{json}|{rust}|&#(?:{ord(letter)}|x{number});|\\{{0,8}}{re.escape(letter)}{blank})"


def _without_answers(text: str) -> str:
    """A text without the parts between the tags of an answer of S3."""
    last = {match[1]: match.start() for match in _CLOSING.finditer(text)}
    pieces, end = [], 0
    for match in _OPENING.finditer(text):
        if end <= match.start() < last.get(match[1], -1):
            pieces += [text[end : match.start()], f"<{match[1]}/>"]
            end = text.index(f"</{match[1]}>", match.end()) + len(f"</{match[1]}>")
    return "".join([*pieces, text[end:]])


def _without_passwords(text: str) -> str:
    """A text without users and passwords in the middle of paths; blanks and quotes end a path."""
    return _RUN.sub(lambda run: _path_without_password(run[0]), text) if "@" in text else text


def _path_without_password(path: str) -> str:
    match = _URL_IN_PATH.search(path, 0, path.rfind("@") + 1)
    if match is None:
        return path
    rest = path[match.start("rest") :]
    return path[: match.start()] + _redact_url(match["scheme"], match["slashes"], rest)


def _redact_match(match: re.Match[str]) -> str:
    return _redact_url(**match.groupdict())


def _redact_url(scheme: str, slashes: str, rest: str) -> str:
    """A URL's parts as one text without its secrets."""
    before, scheme = f"{scheme}:{slashes}" if scheme else slashes, scheme.lower()
    if scheme == "file":  # where names may hold any sign
        rest = _without_user(scheme, rest) if slashes == "//" else rest
        return before + _without_passwords(rest)
    clean = _without_parameters(_without_user(scheme, rest))
    return before + (re.split(r"[?#]", clean, maxsplit=1)[0].rstrip() if scheme in ("http", "https") else clean)


def _without_user(scheme: str, rest: str) -> str:
    """The rest of a URL without user and password; a secret may itself hold slashes and ``@``."""
    authority, slash, path = rest.partition("/")
    if "@" in authority:
        user, _, host = authority.rpartition("@")
        if ":" in user and "@" in path:  # the password's end is unclear, so everything before the last @ is removed
            return rest.rpartition("@")[2]
        container = f"{user.partition(':')[0]}@" if scheme in _CONTAINERS else ""
        return f"{container}{host}{slash}{path}"
    if _PORT.fullmatch(authority) or ":" not in authority:
        return rest
    _, at, host = rest.rpartition("@")  # this is no port, so it is a password with a slash, or one without a host
    return host if at else authority.partition(":")[0] + slash + path


def _without_parameters(text: str) -> str:
    """A text without all parameters if one of them is a secret."""
    parameters = [p for p in _PARAMETER.finditer(text) if p["key"]]
    if not any(is_secret(p["key"]) for p in parameters):
        return text
    starts = [p.start() for p in parameters if p["sign"] in "?#"] or [parameters[0].start()]
    return text[: starts[0]].rstrip("?&#; \t\r\n")
