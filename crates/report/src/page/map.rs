//! A map of a mesh: where nodes stand, which flows go, and what a node's hop takes.

use super::Picture;
use crate::page::chart::Drawn;
use crate::page::digits;
use plotters::prelude::*;

/// A node on the map.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its name.
    pub name: String,
    /// Where it stands, in metres.
    pub at: (f64, f64),
    /// What is said of it, in `Map::unit`; `None` if nothing is known.
    pub value: Option<f64>,
}

/// The map.
#[derive(Clone, Debug, Default)]
pub struct Map {
    /// Name of its file, without extension.
    pub file: String,
    /// What it shows.
    pub title: String,
    /// Its nodes.
    pub places: Vec<Place>,
    /// Flows, from one node to another, as places in the list, with how thick they are drawn: 0 to 1.
    pub flows: Vec<(usize, usize, f64)>,
    /// The unit of values.
    pub unit: String,
    /// What is said below it.
    pub note: String,
}

const SIZE: (u32, u32) = (760, 560);
/// Room around the outermost nodes, metres for each metre of extent.
const MARGIN: f64 = 0.12;
/// Radius of a node, and of the largest of those whose values are known, in pixels.
const RADIUS: (f64, f64) = (6.0, 22.0);
/// An arrow ends so much before its node, and its head is so long, in pixels.
const HEAD: (f64, f64) = (10.0, 9.0);

impl Map {
    /// The picture.
    pub fn picture(&self) -> Picture {
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
            // Drawing into a string cannot fail but for a map without extent, which then stays empty.
            let _ = self.draw(&area).and_then(|()| area.present());
        }
        Picture { file: self.file.clone(), title: self.title.clone(), svg, note: self.note.clone() }
    }

    /// From metres to pixels, both axes alike, the second upwards.
    fn scale(&self) -> impl Fn((f64, f64)) -> (f64, f64) {
        let ends = |of: fn(&Place) -> f64| {
            let values = self.places.iter().map(of);
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)))
        };
        let ((left, right), (bottom, top)) = (ends(|place| place.at.0), ends(|place| place.at.1));
        let (width, height) = (f64::from(SIZE.0), f64::from(SIZE.1) - 40.0);
        let room = 1.0 + 2.0 * MARGIN;
        let scale = (width / ((right - left).max(1.0) * room)).min(height / ((top - bottom).max(1.0) * room));
        let (x, y) = (f64::midpoint(left, right), f64::midpoint(bottom, top));
        move |at| (width / 2.0 + (at.0 - x) * scale, 40.0 + height / 2.0 - (at.1 - y) * scale)
    }

    fn draw<'a>(&self, area: &DrawingArea<SVGBackend<'a>, plotters::coord::Shift>) -> Drawn<'a> {
        area.fill(&WHITE)?;
        area.draw(&Text::new(self.title.clone(), (20, 10), ("sans-serif", 17).into_font()))?;
        if self.places.is_empty() {
            return Ok(());
        }
        let scale = self.scale();
        let pixel = |at: (f64, f64)| (at.0.round() as i32, at.1.round() as i32);
        for (from, to, weight) in &self.flows {
            let (Some(from), Some(to)) = (self.places.get(*from), self.places.get(*to)) else { continue };
            let (start, end) = (scale(from.at), scale(to.at));
            let (dx, dy) = (end.0 - start.0, end.1 - start.1);
            let length = dx.hypot(dy).max(1.0);
            let (ux, uy) = (dx / length, dy / length);
            let tip = (end.0 - ux * HEAD.0, end.1 - uy * HEAD.0);
            let base = (tip.0 - ux * HEAD.1, tip.1 - uy * HEAD.1);
            let style = RGBColor(0, 114, 178).mix(0.55);
            let width = 1 + (weight.clamp(0.0, 1.0) * 4.0).round() as u32;
            area.draw(&PathElement::new(vec![pixel(start), pixel(base)], style.stroke_width(width)))?;
            let side = |sign: f64| (base.0 - sign * uy * HEAD.1 * 0.5, base.1 + sign * ux * HEAD.1 * 0.5);
            area.draw(&Polygon::new(vec![pixel(tip), pixel(side(1.0)), pixel(side(-1.0))], style.filled()))?;
        }
        let most = self.places.iter().filter_map(|place| place.value).fold(f64::MIN_POSITIVE, f64::max);
        for place in &self.places {
            let (x, y) = pixel(scale(place.at));
            // The area of a circle stands for its value.
            let radius = place.value.map_or(RADIUS.0, |value| RADIUS.0 + (RADIUS.1 - RADIUS.0) * (value / most).sqrt());
            area.draw(&Circle::new((x, y), radius as i32, RGBColor(213, 94, 0).mix(0.35).filled()))?;
            area.draw(&Circle::new((x, y), 3, BLACK.filled()))?;
            let said = place.value.map(|value| format!(": {} {}", digits(value), self.unit)).unwrap_or_default();
            let text = format!("{}{said}", place.name);
            area.draw(&Text::new(text, (x + 8, y + 8), ("sans-serif", 13).into_font()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str, x: f64, y: f64) -> Place {
        Place { name: name.to_owned(), at: (x, y), value: Some(2.0) }
    }

    #[test]
    fn distances_keep_their_proportions_and_nodes_lie_within() {
        let places = vec![place("a", 0.0, 0.0), place("b", 100.0, 0.0), place("c", 0.0, 20.0)];
        let map = Map { places, flows: vec![(0, 1, 1.0), (2, 9, 0.0)], unit: "ms".into(), ..Map::default() };
        let scale = map.scale();
        let [a, b, c] = [(0.0, 0.0), (100.0, 0.0), (0.0, 20.0)].map(scale);
        assert!(((b.0 - a.0) / (a.1 - c.1) - 5.0).abs() < 1e-9);
        assert!([a, b, c].iter().all(|at| at.0 > 0.0 && at.0 < 760.0 && at.1 > 40.0 && at.1 < 560.0));
        let svg = map.picture().svg;
        assert!(svg.contains("b: 2.00 ms") && svg.matches("<polygon").count() == 1, "{svg}");
    }
}
