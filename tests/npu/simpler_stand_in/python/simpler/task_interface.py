import enum


class ArgDirection(enum.Enum):
    IN = 0
    OUT = 1
    INOUT = 2
