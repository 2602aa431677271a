//! Bars with standard deviations, in groups.

use super::Picture;
use super::legend::{self, LINE};
use crate::Estimate;
use crate::page::chart::{COLOURS, Drawn, plain};
use plotters::prelude::*;

/// Groups of bars: one group a case, one bar of it each that is compared.
#[derive(Clone, Debug, Default)]
pub struct Bars {
    /// Name of its file, without extension.
    pub file: String,
    /// What it shows.
    pub title: String,
    /// Label of the vertical axis, with its unit.
    pub y: String,
    /// Names of the groups.
    pub groups: Vec<String>,
    /// What is compared: its name, and its value in each group.
    pub bars: Vec<(String, Vec<Estimate>)>,
}

/// What bars and their whiskers are.
pub(super) const DEVIATIONS: &str = "Bars: means over the seeds. Whiskers: standard deviations of single runs.";

const SIZE: (u32, u32) = (760, 420);
/// Part of a group's width that its bars fill.
const FILLED: f64 = 0.84;
/// The legend: width of a sample, and of the room after a name, in pixels.
const SAMPLE: i32 = 17;
const ROOM: i32 = 20;

impl Bars {
    /// The picture.
    pub fn picture(&self) -> Picture {
        Picture { file: self.file.clone(), title: self.title.clone(), svg: self.svg(), note: DEVIATIONS.into() }
    }

    fn svg(&self) -> String {
        let mut text = String::new();
        {
            let legend = legend::places(self.bars.iter().map(|(name, _)| name.as_str()), SIZE.0, (SAMPLE, ROOM));
            let size = (SIZE.0, SIZE.1 + legend::height(&legend));
            let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
            // Drawing into a string cannot fail but for a chart without extent, which then stays empty.
            let _ = self.draw(&area, &legend).and_then(|()| area.present());
        }
        text
    }

    /// Where the bar of that group and place stands on the horizontal axis, whose groups are 1 wide.
    fn edges(&self, group: usize, place: usize) -> (f64, f64) {
        let width = FILLED / self.bars.len().max(1) as f64;
        let left = group as f64 + (1.0 - FILLED) / 2.0 + place as f64 * width;
        (left, left + width * 0.9)
    }

    fn draw<'a>(&self, area: &DrawingArea<SVGBackend<'a>, plotters::coord::Shift>, legend: &[(i32, i32)]) -> Drawn<'a> {
        area.fill(&WHITE)?;
        let (above, below) = area.split_vertically(SIZE.1);
        let tops = self.bars.iter().flat_map(|(_, values)| values);
        let top = tops.filter_map(|value| Some(value.mean? + value.sd.unwrap_or(0.0))).fold(1e-9, f64::max) * 1.08;
        let groups = self.groups.len().max(1);
        let mut chart = ChartBuilder::on(&above)
            .caption(&self.title, ("sans-serif", 17))
            .margin(12)
            .x_label_area_size(30)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..groups as f64, 0.0..top)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .disable_x_axis()
            .y_desc(&self.y)
            .y_label_formatter(&|value| plain(*value))
            .label_style(("sans-serif", 13))
            .axis_desc_style(("sans-serif", 14))
            .light_line_style(WHITE)
            .draw()?;
        for (place, ((_, values), colour)) in self.bars.iter().zip(COLOURS.into_iter().cycle()).enumerate() {
            for (group, value) in values.iter().enumerate() {
                let Some(mean) = value.mean else { continue };
                let (left, right) = self.edges(group, place);
                chart.draw_series([Rectangle::new([(left, 0.0), (right, mean)], colour.filled())])?;
                let middle = f64::midpoint(left, right);
                let spread = value.sd.unwrap_or(0.0);
                let whisker = [(middle, (mean - spread).max(0.0)), (middle, mean + spread)];
                chart.draw_series([PathElement::new(whisker, BLACK.stroke_width(1))])?;
            }
        }
        for (group, name) in self.groups.iter().enumerate() {
            let (x, y) = chart.backend_coord(&(group as f64 + 0.5, 0.0));
            let width = 7 * i32::try_from(name.chars().count()).unwrap_or(0);
            above.draw(&Text::new(name.clone(), (x - width / 2, y + 8), ("sans-serif", 13).into_font()))?;
        }
        for (((name, _), colour), (line, x)) in self.bars.iter().zip(COLOURS.into_iter().cycle()).zip(legend) {
            let (x, y) = (*x, line * LINE);
            below.draw(&Rectangle::new([(x, y + 4), (x + 12, y + 16)], colour.filled()))?;
            below.draw(&Text::new(name.clone(), (x + SAMPLE, y + 4), ("sans-serif", 13).into_font()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Figure;

    fn bars() -> Bars {
        let of = |values: [f64; 3]| Estimate::of("Mbit/s", &values.map(Figure::exact));
        Bars {
            groups: vec!["1 hop".into(), "2 hops".into()],
            bars: vec![
                ("a".into(), vec![of([1.0, 2.0, 3.0]), of([1.0, 1.0, 1.0])]),
                ("b".into(), vec![of([4.0, 5.0, 6.0]), Estimate::of("Mbit/s", &[])]),
            ],
            ..Bars::default()
        }
    }

    #[test]
    fn what_was_not_measured_has_no_bar() {
        let svg = bars().picture().svg;
        let colours = ["#0072B2", "#D55E00"];
        // A bar each, and a sample in the legend.
        let counts = colours.map(|colour| svg.matches(&format!("fill=\"{colour}\"")).count());
        assert_eq!(counts, [3, 2], "{svg}");
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn bars_of_a_group_do_not_overlap() {
        let bars = bars();
        let edges = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(group, place)| bars.edges(group, place));
        assert!(edges.windows(2).all(|two| two[0].1 < two[1].0) && edges[3].1 < 2.0, "{edges:?}");
    }
}
