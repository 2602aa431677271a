//! What is to be run: scenario files, parsed, validated whole and composed from each room's parameters.
