//! What must hold for the source files themselves.
