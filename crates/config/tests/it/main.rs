//! Files as they are on disk.

mod files;
