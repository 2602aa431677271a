//! Line charts as SVG.

use super::legend::{self, LETTER, LINE};
use crate::Estimate;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
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
    /// True for a logarithmic vertical axis: where values span decades.
    pub logarithmic: bool,
    /// A place on the horizontal axis that matters, and why.
    pub mark: Option<(f64, String)>,
    /// What lines, bands and whiskers are; stands below the picture.
    pub note: String,
}

/// One curve.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// How sure they are, or how far they spread: place, least, most. Whiskers on few points, else a band.
    pub spread: Vec<(f64, f64, f64)>,
    /// True for a reference (theory, target): drawn thin and without points.
    pub reference: bool,
}

/// What a legend entry of means over seeds with bands stands for.
pub const MEANS: &str = "Lines: means over the seeds. Bands and whiskers: 95 % confidence intervals of these means.";

/// Colours that people with the common colour blindnesses can tell apart (Okabe and Ito).
pub(super) const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(150, 150, 150),
];
const SIZE: (u32, u32) = (760, 420);
/// More points than this are a trace: no marks, and a band in place of whiskers.
const FEW: usize = 40;
/// The legend: width of a sample, and of the room after a name, in pixels.
const SAMPLE: i32 = 22;
const ROOM: i32 = 24;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Drawn<'a> = Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

impl Curve {
    /// A measured curve.
    pub fn measured(name: impl Into<String>, points: Vec<(f64, f64)>) -> Curve {
        Curve { name: name.into(), points, ..Curve::default() }
    }

    /// A measured curve of means over seeds, with their intervals. Places without a value are left out.
    pub fn estimated(name: impl Into<String>, estimates: impl IntoIterator<Item = (f64, Estimate)>) -> Curve {
        let mut curve = Curve { name: name.into(), ..Curve::default() };
        for (x, estimate) in estimates {
            curve.points.extend(estimate.mean.map(|mean| (x, mean)));
            curve.spread.extend(estimate.ci95.map(|[least, most]| (x, least, most)));
        }
        curve
    }

    /// Theory, or a target.
    pub fn reference(name: impl Into<String>, points: Vec<(f64, f64)>) -> Curve {
        Curve { name: name.into(), points, reference: true, ..Curve::default() }
    }
}

impl Chart {
    /// Means over the seeds and their intervals over the time of a run.
    pub fn over_time(file: impl Into<String>, title: impl Into<String>, y: &str, curves: Vec<Curve>) -> Chart {
        let (file, title, y) = (file.into(), title.into(), y.into());
        Chart { file, title, x: "time (s)".into(), y, curves, note: MEANS.into(), ..Chart::default() }
    }

    /// The same on a logarithmic vertical axis.
    pub fn logarithmic(self) -> Chart {
        Chart { logarithmic: true, ..self }
    }

    /// The chart as SVG.
    pub fn svg(&self) -> String {
        let mut text = String::new();
        {
            let legend = self.legend();
            let size = (SIZE.0, SIZE.1 + legend::height(&legend));
            let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
            // Drawing into a string cannot fail but for a chart without extent, which then stays empty.
            let _ = self.draw(&area, &legend).and_then(|()| area.present());
        }
        text
    }

    fn draw<'a>(&self, area: &Area<'a>, legend: &[(i32, i32)]) -> Drawn<'a> {
        area.fill(&WHITE)?;
        let (above, below) = area.split_vertically(SIZE.1);
        let spread = |curve: &Curve| curve.spread.iter().flat_map(|&(x, a, b)| [(x, a), (x, b)]).collect::<Vec<_>>();
        let all = || self.curves.iter().flat_map(|curve| [curve.points.clone(), spread(curve)].concat());
        let (x_least, x_most) = ends(all().map(|point| point.0).chain(self.mark.iter().map(|mark| mark.0)));
        // Room for the marks where there is nothing else to see.
        let alone = self.curves.iter().all(|curve| curve.points.len() <= 1);
        let margin = if alone { (x_most - x_least) / 20.0 } else { 0.0 };
        let (x_least, x_most) = (x_least - margin, x_most + margin);
        if !x_least.is_finite() || x_most <= x_least {
            return Ok(());
        }
        if self.logarithmic {
            // Ends of intervals may be negative; points are not.
            let points = self.curves.iter().flat_map(|curve| &curve.points).map(|point| point.1);
            let (least, most) = ends(points.filter(|y| *y > 0.0));
            let most = most.max(ends(all().map(|point| point.1)).1);
            // At least a decade, so that there is something to read off.
            let (bottom, top) = (least / 1.4, (most * 1.4).max(least * 10.0));
            self.plot(&above, x_least..x_most, (bottom..top).log_scale(), (bottom, top))?;
        } else {
            let top = ends(all().map(|point| point.1)).1.max(1e-9) * 1.08;
            self.plot(&above, x_least..x_most, 0.0..top, (0.0, top))?;
        }
        self.draw_legend(&below, legend)
    }

    fn plot<'a, Y>(&self, area: &Area<'a>, x: std::ops::Range<f64>, y: Y, (bottom, top): (f64, f64)) -> Drawn<'a>
    where
        Y: AsRangedCoord<Value = f64>,
        Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let extent = x.end - x.start;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 17))
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(60)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .x_desc(&self.x)
            .y_desc(&self.y)
            .x_label_formatter(&|value| plain(*value))
            .y_label_formatter(&|value| if self.logarithmic { decade(*value) } else { plain(*value) })
            .label_style(("sans-serif", 13))
            .axis_desc_style(("sans-serif", 14))
            .light_line_style(WHITE)
            .draw()?;
        if let Some((x, what)) = &self.mark {
            let style = BLACK.mix(0.5);
            chart.draw_series([PathElement::new([(*x, bottom), (*x, top)], style)])?;
            let font = ("sans-serif", 13).into_font().color(&style);
            let corner = chart.backend_coord(&(*x, top));
            let width = LETTER * i32::try_from(what.chars().count()).unwrap_or(0);
            area.draw(&Text::new(what.clone(), (corner.0 - width, corner.1 + 4), font))?;
        }
        let within = |value: f64| value.clamp(bottom, top);
        let cap = extent / 150.0;
        for (curve, colour) in self.coloured() {
            let spread = curve.spread.iter().map(|&(x, least, most)| (x, within(least), within(most)));
            if curve.points.len() <= FEW {
                let strokes = spread.flat_map(|(x, least, most)| {
                    let cap = |y| [(x - cap, y), (x + cap, y)];
                    [[(x, least), (x, most)], cap(least), cap(most)]
                });
                chart.draw_series(strokes.map(|ends| PathElement::new(ends, colour.stroke_width(1))))?;
            } else if !curve.spread.is_empty() {
                let (there, back): (Vec<_>, Vec<_>) = spread.map(|(x, least, most)| ((x, most), (x, least))).unzip();
                let outline: Vec<(f64, f64)> = there.into_iter().chain(back.into_iter().rev()).collect();
                chart.draw_series([Polygon::new(outline, colour.mix(0.2))])?;
            }
        }
        for (curve, colour) in self.coloured() {
            let points = || curve.points.iter().map(|&(x, y)| (x, within(y)));
            chart.draw_series(LineSeries::new(points(), curve.style(colour)))?;
            if !curve.reference && curve.points.len() <= FEW {
                chart.draw_series(points().map(|point| Circle::new(point, 3, colour.filled())))?;
            }
        }
        Ok(())
    }

    /// Curves and their colours.
    fn coloured(&self) -> impl Iterator<Item = (&Curve, RGBColor)> {
        self.curves.iter().zip(COLOURS.into_iter().cycle())
    }

    /// Line and place of each curve's entry in the legend, which stands below the axes so that it covers nothing.
    fn legend(&self) -> Vec<(i32, i32)> {
        legend::places(self.curves.iter().map(|curve| curve.name.as_str()), SIZE.0, (SAMPLE, ROOM))
    }

    fn draw_legend<'a>(&self, area: &Area<'a>, places: &[(i32, i32)]) -> Drawn<'a> {
        for ((curve, colour), (line, at)) in self.coloured().zip(places) {
            let y = line * LINE + LINE / 2;
            area.draw(&PathElement::new([(*at, y), (at + SAMPLE - 6, y)], curve.style(colour)))?;
            if !curve.reference && curve.points.len() <= FEW {
                area.draw(&Circle::new((at + (SAMPLE - 6) / 2, y), 3, colour.filled()))?;
            }
            area.draw(&Text::new(curve.name.clone(), (at + SAMPLE, y - 7), ("sans-serif", 13).into_font()))?;
        }
        Ok(())
    }
}

impl Curve {
    fn style(&self, colour: RGBColor) -> ShapeStyle {
        if self.reference { colour.mix(0.9).stroke_width(1) } else { colour.stroke_width(2) }
    }
}

/// Smallest and largest of what is finite.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite());
    finite.fold((f64::INFINITY, 0.0), |(least, most), value| (least.min(value), most.max(value)))
}

/// A number on a logarithmic axis: only 1, 2 and 5 of a decade, for the others stand too close.
fn decade(value: f64) -> String {
    let leading = value / 10f64.powf((value.log10() + 1e-9).floor());
    if [1.0, 2.0, 5.0].iter().any(|digit| (leading - digit).abs() < 0.01) { plain(value) } else { String::new() }
}

/// A number on an axis: no more digits than it has.
pub(super) fn plain(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(logarithmic: bool) -> Chart {
        let names = ["one", "a name that is rather long for a legend", "another one that is just as long", "the last"];
        let curve = |name: &&str| Curve {
            spread: vec![(1.0, -0.5, 2.0), (2.0, 90.0, 1_000.0)],
            ..Curve::measured(*name, vec![(1.0, 1.0), (2.0, 1_000.0)])
        };
        let mark = Some((1.5, "here".to_owned()));
        Chart { curves: names.iter().map(curve).collect(), logarithmic, mark, ..Chart::default() }
    }

    #[test]
    fn legend_entries_do_not_overlap() {
        let chart = chart(false);
        let places = chart.legend();
        let width = |curve: &Curve| SAMPLE + LETTER * curve.name.len() as i32;
        let boxes: Vec<_> =
            chart.curves.iter().zip(&places).map(|(c, (line, at))| (*line, *at, at + width(c))).collect();
        assert!(boxes.iter().all(|(_, _, end)| *end <= SIZE.0 as i32), "{boxes:?}");
        assert!(boxes.windows(2).all(|two| two[1].0 > two[0].0 || two[1].1 > two[0].2), "{boxes:?}");
        assert!(boxes.last().is_some_and(|last| last.0 > 0), "more than a line holds");
    }

    #[test]
    fn intervals_are_drawn_on_linear_and_logarithmic_axes() {
        for logarithmic in [false, true] {
            let svg = chart(logarithmic).svg();
            assert!(svg.contains("</svg>") && svg.contains("here") && !svg.contains("NaN"), "{svg}");
            let mut bare = chart(logarithmic);
            bare.curves.iter_mut().for_each(|curve| curve.spread.clear());
            let strokes = |svg: &str| svg.matches("<polyline").count();
            // A whisker and two caps at two places of four curves.
            assert_eq!(strokes(&svg) - strokes(&bare.svg()), 24);
        }
        let trace: Vec<(f64, f64)> = (0..100).map(|i| (f64::from(i), 2.0)).collect();
        let spread = trace.iter().map(|&(x, y)| (x, y - 1.0, y + 1.0)).collect();
        let banded = Chart { curves: vec![Curve { spread, ..Curve::measured("x", trace) }], ..Chart::default() };
        assert_eq!(banded.svg().matches("<polygon").count(), 1);
    }

    #[test]
    fn numbers_on_an_axis_have_no_idle_digits() {
        assert_eq!([1000.0, 0.5, 0.02, 7.0].map(plain), ["1000", "0.5", "0.02", "7"]);
        assert_eq!([1000.0, 0.5, 0.02, 7.0, 90.0].map(decade), ["1000", "0.5", "0.02", "", ""]);
    }
}
