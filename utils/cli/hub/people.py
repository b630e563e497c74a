"""Who is in a class: names, passwords of which only digests are kept, and the sheet to print."""

import hashlib
import hmac
import re
import secrets
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import jinja2
import msgspec

from utils.course.files import replace_file

TEACHER = "teacher"
MOST = 200
"""People in a class: more are a typing error, or need more than one machine."""
_CONSONANTS, _VOWELS = "bdfghkmnprstvz", "aeiou"
_COST = {"n": 2**14, "r": 8, "p": 1}
_TEMPLATES = Path(__file__).parent / "templates"


class ClassError(ValueError):
    """The class cannot be as asked; the text says what to do."""


class Person(msgspec.Struct, frozen=True):
    """name: for logging in and for folders. shown: as the teacher wrote it. number: its place in
    the class, which never changes. salt, digest: of the password, in hex."""

    name: str
    shown: str
    number: int
    salt: str
    digest: str

    @property
    def teacher(self) -> bool:
        """Whether this person sees the progress of all."""
        return self.name == TEACHER


@dataclass(frozen=True)
class Class:
    """The folder of a class: the class file, each person's work, what was handed in."""

    folder: Path
    people: dict[str, Person] = field(default_factory=dict)

    def work(self, name: str) -> Path:
        """The folder that a person sees as work/."""
        return self.folder / "people" / name

    @property
    def submissions(self) -> Path:
        """The folder for `course.py grade`."""
        return self.folder / "submissions"


def load(folder: Path) -> Class:
    """The class in a folder; one without people if there is none yet. Raises ClassError."""
    try:
        content = (folder / "class.json").read_bytes()
        people = msgspec.json.decode(content, type=list[Person])
    except FileNotFoundError:
        return Class(folder)
    except (OSError, msgspec.DecodeError) as error:
        raise ClassError(f"{folder / 'class.json'} cannot be read: {error}") from None
    return Class(folder, {person.name: person for person in people})


def save(known: Class) -> None:
    """Write the class file, which nobody else may read."""
    known.folder.mkdir(parents=True, exist_ok=True)
    known.folder.chmod(0o700)
    text = msgspec.json.format(msgspec.json.encode(list(known.people.values()))).decode()
    replace_file(known.folder / "class.json", f"{text}\n", private=True)


def add(known: Class, shown: Iterable[str]) -> dict[str, str]:
    """Add people who are not in the class yet, a teacher before the first. Returns {name: password}
    of the new ones; the passwords are kept nowhere."""
    present = {person.shown for person in known.people.values()}
    number = max((person.number for person in known.people.values()), default=-1)
    new: dict[str, Person] = {}
    for text in [TEACHER, *shown]:
        text = " ".join("".join(c if c.isprintable() else " " for c in text).split())[:60]
        if text and text not in present:
            present.add(text)
            name = _free(login_name(text), known.people.keys() | new.keys())
            new[name] = Person(name, text, number := number + 1, "", "")
    if new and len(known.people) + len(new) > MOST + 1:
        raise ClassError(f"more than {MOST} people: make a second class with --folder")
    return {name: _put(known, person) for name, person in new.items()}


def renew(known: Class, name: str) -> dict[str, str]:
    """A new password for somebody; the old one ends. Returns {name: password}."""
    if name not in known.people:
        raise ClassError(f"nobody is called {name!r}; there are {', '.join(known.people)}")
    return {name: _put(known, known.people[name])}


def _put(known: Class, person: Person) -> str:
    password, salt = new_password(), secrets.token_hex(16)
    digest = _digest(password, salt)
    known.people[person.name] = msgspec.structs.replace(person, salt=salt, digest=digest)
    return password


def login_name(text: str) -> str:
    """A name of small letters, digits and dashes; "person" where none of it is Latin.

    >>> login_name("Jürgen  Müller"), login_name("../../etc"), login_name("王")
    ('jurgen-muller', 'etc', 'person')
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:24].strip("-") or "person"


def _free(name: str, taken: Iterable[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


def new_password() -> str:
    """Three times two syllables, easy to type on a tablet: 36 bits, and each try costs the hub 50
    ms.

    >>> len(new_password())
    14
    """
    syllables = [secrets.choice(_CONSONANTS) + secrets.choice(_VOWELS) for _ in range(6)]
    return "-".join(a + b for a, b in zip(syllables[::2], syllables[1::2], strict=True))


def _digest(password: str, salt: str) -> str:
    return hashlib.scrypt(password.encode(), salt=bytes.fromhex(salt), **_COST).hex()  # type: ignore[arg-type]


def right(known: Class, name: str, password: str) -> bool:
    """Whether somebody's password is right. Takes as long for names that nobody has."""
    person = known.people.get(name)
    salt, digest = (person.salt, person.digest) if person else ("00" * 16, "")
    return hmac.compare_digest(_digest(password[:100].strip().lower(), salt), digest)


def render(template: str, **values: object) -> str:
    """A page of `templates/`; all values are escaped."""
    loader = jinja2.FileSystemLoader(_TEMPLATES)
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True)
    return environment.get_template(template).render(values)


def write_sheet(known: Class, passwords: dict[str, str], address: str) -> Path:
    """The page to print and cut, a card for each new password. Nobody else may read the file."""
    cards = [(known.people[name], password) for name, password in passwords.items()]
    path = known.folder / "sheet.html"
    page = render("sheet.html.jinja", cards=cards, address=address)
    replace_file(path, page, private=True)
    return path
