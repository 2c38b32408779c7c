"""A reader of stories in the form of bAbI, written apart from the package: it follows persons and things."""

TAKES, DROPS = {"got", "took", "grabbed", "picked"}, {"dropped", "left", "discarded", "put"}
PERSONS, OBJECTS = {"Daniel", "John", "Mary", "Sandra"}, {"apple", "football", "milk"}
PLACES = {"bathroom", "bedroom", "garden", "hallway", "kitchen", "office"}


def answer(statements, question):
    """What the words of a question ask for, after statements that are words each."""
    at, carried, been = {}, {person: set() for person in PERSONS}, {thing: [] for thing in OBJECTS}
    for person, verb, *rest in statements:
        (thing,) = OBJECTS & set(rest) or {None}
        if verb in TAKES:
            carried[person].add(thing)
            if been[thing] in ([], [None]):  # somebody whose place was not told may have had it first
                been[thing] = [at.get(person)]
        elif verb in DROPS:
            carried[person].discard(thing)
        else:
            (at[person],) = PLACES & set(rest)
            for thing in carried[person]:
                been[thing].append(at[person])
    if question[1] == "is" and question[2] in PERSONS:
        return at[question[2]]
    (thing,) = OBJECTS & set(question)
    if question[1] == "is":
        return been[thing][-1]
    last = len(been[thing]) - 1 - been[thing][::-1].index(question[-2])
    return been[thing][last - 1]
