//! Text in columns.

use std::fmt;

/// Rows with a title, a cell for each contender, and a goal.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table for these contenders.
    pub(super) fn new<'a>(contenders: impl Iterator<Item = &'a str>) -> Self {
        let head = [""].into_iter().chain(contenders).chain(["goal"]).map(Into::into).collect();
        Self { rows: vec![head] }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, title: &str, cells: impl Iterator<Item = String>, goal: Option<String>) {
        let row = [title.to_owned()].into_iter().chain(cells).chain([goal.unwrap_or_default()]);
        self.rows.push(row.collect());
    }

    fn width(&self, column: usize) -> usize {
        self.rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or_default()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            let cells =
                row.iter().enumerate().map(|(column, cell)| format!("{cell:<0$}", self.width(column)));
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("   ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["one", "two"].into_iter());
        table.row("time", ["1.5", "22 met"].map(String::from).into_iter(), Some("<= 30".into()));
        let expected = "       one   two      goal\ntime   1.5   22 met   <= 30\n";
        assert_eq!(table.to_string(), expected);
    }
}
