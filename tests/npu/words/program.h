// In place of a tree's: tests write the enums before an expand.cpp.
