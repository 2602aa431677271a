//! Columns that lie side by side, each of parts on top of each other: who has which part of a whole over time.

use super::Picture;
use super::legend::{self, LINE};
use crate::page::chart::{COLOURS, Drawn, plain};
use plotters::prelude::*;

/// The picture.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    /// Name of its file, without extension.
    pub file: String,
    /// What it shows.
    pub title: String,
    /// Label of the horizontal axis, with its unit.
    pub x: String,
    /// Label of the vertical axis, with its unit.
    pub y: String,
    /// The whole: where the vertical axis ends.
    pub top: f64,
    /// Names of the parts, from below.
    pub names: Vec<String>,
    /// Columns: from where to where they reach, and how large their parts are, in the order of the names. What they leave of the whole
    /// stays white.
    pub columns: Vec<(f64, f64, Vec<f64>)>,
    /// What is said below it.
    pub note: String,
}

const SIZE: (u32, u32) = (760, 420);
/// The legend: width of a sample, and of the room after a name, in pixels.
const SAMPLE: i32 = 17;
const ROOM: i32 = 20;

impl Stack {
    /// The picture.
    pub fn picture(&self) -> Picture {
        let Stack { file, title, note, .. } = self.clone();
        Picture { file, title, svg: self.svg(), note }
    }

    fn svg(&self) -> String {
        let mut text = String::new();
        {
            let legend = self.legend();
            let size = (SIZE.0, SIZE.1 + legend::height(&legend));
            let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
            // Drawing into a string cannot fail but for a picture without extent, which then stays empty.
            let _ = self.draw(&area, &legend).and_then(|()| area.present());
        }
        text
    }

    fn draw<'a>(&self, area: &DrawingArea<SVGBackend<'a>, plotters::coord::Shift>, legend: &[(i32, i32)]) -> Drawn<'a> {
        area.fill(&WHITE)?;
        let ends = || self.columns.iter().flat_map(|(from, to, _)| [*from, *to]);
        let (least, most) = (ends().fold(f64::INFINITY, f64::min), ends().fold(f64::NEG_INFINITY, f64::max));
        if most <= least || self.top <= 0.0 {
            return Ok(());
        }
        let (above, below) = area.split_vertically(SIZE.1);
        let mut chart = ChartBuilder::on(&above)
            .caption(&self.title, ("sans-serif", 17))
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(60)
            .build_cartesian_2d(least..most, 0.0..self.top)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .x_desc(&self.x)
            .y_desc(&self.y)
            .x_label_formatter(&|value| plain(*value))
            .y_label_formatter(&|value| plain(*value))
            .label_style(("sans-serif", 13))
            .axis_desc_style(("sans-serif", 14))
            .draw()?;
        for (from, to, parts) in &self.columns {
            let mut bottom = 0.0;
            for (part, colour) in parts.iter().zip(COLOURS.into_iter().cycle()) {
                let end = (bottom + part).min(self.top);
                if end > bottom {
                    chart.draw_series([Rectangle::new([(*from, bottom), (*to, end)], colour.filled())])?;
                }
                bottom = end;
            }
        }
        for ((name, colour), (line, at)) in self.names.iter().zip(COLOURS.into_iter().cycle()).zip(legend) {
            let y = line * LINE;
            below.draw(&Rectangle::new([(*at, y + 3), (at + 12, y + 15)], colour.filled()))?;
            below.draw(&Text::new(name.clone(), (at + SAMPLE, y + 3), ("sans-serif", 13).into_font()))?;
        }
        Ok(())
    }

    /// Line and place of each name in the legend.
    fn legend(&self) -> Vec<(i32, i32)> {
        legend::places(self.names.iter().map(String::as_str), SIZE.0, (SAMPLE, ROOM))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(columns: Vec<(f64, f64, Vec<f64>)>) -> String {
        let names = vec!["one".into(), "two".into()];
        Stack { top: 10.0, names, columns, ..Stack::default() }.picture().svg
    }

    fn count(svg: &str, colour: &str) -> usize {
        svg.matches(&format!("fill=\"{colour}\"")).count()
    }

    #[test]
    fn parts_lie_on_each_other_and_stay_within_the_whole() {
        let svg = stack(vec![(0.0, 1.0, vec![4.0, 3.0]), (1.0, 2.0, vec![0.0, 5.0]), (2.0, 3.0, vec![12.0, 5.0])]);
        // And a sample each in the legend; a part of nothing and one beyond the whole have no rectangle.
        assert_eq!((count(&svg, "#0072B2"), count(&svg, "#D55E00")), (3, 3), "{svg}");
        let heights = |colour: &str| -> Vec<u32> {
            let drawn = svg.lines().filter(|line| line.contains("<rect") && line.contains(colour));
            let height = |line: &str| line.split("height=\"").nth(1)?.split('"').next()?.parse().ok();
            drawn.filter_map(height).filter(|height| *height != 12).collect()
        };
        let (first, second) = (heights("#0072B2"), heights("#D55E00"));
        let near = |got: u32, part: u32, whole: u32| got.abs_diff(whole * part / 10) <= 2;
        assert!(near(first[0], 4, first[1]) && near(second[0], 3, first[1]) && near(second[1], 5, first[1]), "{svg}");
    }

    #[test]
    fn a_picture_without_extent_stays_empty() {
        for columns in [vec![], vec![(1.0, 1.0, vec![1.0])]] {
            assert_eq!(stack(columns).matches("<rect").count(), 1, "nothing but the ground");
        }
    }
}
