//! Line charts as SVG.

use plotters::prelude::*;

/// A chart.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// Name of its file, without extension.
    pub file: String,
    /// What it shows.
    pub title: String,
    /// Label of the horizontal axis, with its unit.
    pub x: String,
    /// Label of the vertical axis, with its unit.
    pub y: String,
    /// What is drawn.
    pub curves: Vec<Curve>,
}

/// One curve.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// True for a reference (theory, target): drawn thin and without points.
    pub reference: bool,
}

/// Colours that people with the common colour blindnesses can tell apart (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
];
const SIZE: (u32, u32) = (760, 420);

impl Curve {
    /// A measured curve.
    pub fn measured(name: impl Into<String>, points: Vec<(f64, f64)>) -> Curve {
        Curve { name: name.into(), points, reference: false }
    }

    /// Theory, or a target.
    pub fn reference(name: impl Into<String>, points: Vec<(f64, f64)>) -> Curve {
        Curve { name: name.into(), points, reference: true }
    }
}

impl Chart {
    /// The chart as SVG.
    pub fn svg(&self) -> String {
        let mut text = String::new();
        {
            let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
            // Drawing into a string cannot fail but for a chart without extent, which then stays empty.
            let _ = self.draw(&area).and_then(|()| area.present());
        }
        text
    }

    fn draw<'a>(
        &self,
        area: &DrawingArea<SVGBackend<'a>, plotters::coord::Shift>,
    ) -> Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>> {
        area.fill(&WHITE)?;
        let all = || self.curves.iter().flat_map(|curve| curve.points.iter().copied());
        let most = |pick: fn((f64, f64)) -> f64| all().map(pick).fold(0.0f64, f64::max);
        let least = |pick: fn((f64, f64)) -> f64| all().map(pick).fold(f64::INFINITY, f64::min);
        let (x_least, x_most) = (least(|point| point.0), most(|point| point.0));
        if !x_least.is_finite() || x_most <= x_least {
            return Ok(());
        }
        let y_most = most(|point| point.1).max(1e-9) * 1.08;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 17))
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(60)
            .build_cartesian_2d(x_least..x_most, 0.0..y_most)?;
        chart
            .configure_mesh()
            .x_desc(&self.x)
            .y_desc(&self.y)
            .label_style(("sans-serif", 13))
            .axis_desc_style(("sans-serif", 14))
            .light_line_style(WHITE)
            .draw()?;
        for (place, curve) in self.curves.iter().enumerate() {
            let colour = COLOURS[place % COLOURS.len()];
            let style = if curve.reference { colour.mix(0.6).stroke_width(1) } else { colour.stroke_width(2) };
            chart
                .draw_series(LineSeries::new(curve.points.iter().copied(), style))?
                .label(&curve.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
            // Many points are a trace, and need no marks.
            if !curve.reference && curve.points.len() <= 40 {
                let dots = curve.points.iter().map(|point| Circle::new(*point, 3, colour.filled()));
                chart.draw_series(dots)?;
            }
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .label_font(("sans-serif", 13))
            .draw()
    }
}
