//! The comparison as a picture: lines are ours, circles ns-3's.

use super::meter::Figures;
use super::{Point, groups};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::path::Path;

/// One panel: a figure over the offered load.
#[derive(Clone)]
struct Panel<'a> {
    title: &'a str,
    points: &'a [Point<'a>],
    column: &'a str,
    of: fn(&Figures) -> f64,
    /// Loads above this are left out.
    up_to: f64,
    low: f64,
    high: f64,
    legend: SeriesLabelPosition,
}

type Drawing<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Draws everything into one file.
pub fn draw(path: &Path, one: &[Point], several: &[Point]) -> Outcome {
    let area = SVGBackend::new(path, (1120, 1180)).into_drawing_area();
    area.fill(&WHITE)?;
    let mpdus = Panel {
        title: "One station: MPDUs a PPDU, mean",
        points: one,
        column: "mean_mpdus_avg",
        of: |f| f.mpdus,
        up_to: 1.2,
        low: 0.9,
        high: 80.0,
        legend: SeriesLabelPosition::UpperLeft,
    };
    let deviation = Panel {
        title: "One station: MPDUs a PPDU, standard deviation",
        column: "sd_mpdus_avg",
        of: |f| f.mpdus_sd,
        up_to: 0.96,
        low: 0.01,
        high: 8.0,
        legend: SeriesLabelPosition::LowerRight,
        ..mpdus
    };
    let delay = Panel {
        title: "One station: mean delay (ms)",
        column: "delay_rx_mean_ms_avg",
        of: |f| f.delay,
        low: 0.05,
        high: 400.0,
        ..mpdus.clone()
    };
    let late = Panel {
        title: "One station: 95th percentile of the delay (ms)",
        column: "delay_rx_p95_ms_avg",
        of: |f| f.delay_p95,
        ..delay.clone()
    };
    let panels = [
        mpdus.clone(),
        deviation,
        delay.clone(),
        late,
        Panel { title: "Several stations: MPDUs a PPDU, mean", points: several, ..mpdus },
        Panel { title: "Several stations: mean delay (ms)", points: several, high: 20.0, ..delay },
    ];
    for (area, panel) in area.split_evenly((3, 2)).iter().zip(&panels) {
        draw_panel(area, panel)?;
    }
    area.present()?;
    Ok(())
}

fn draw_panel(area: &Drawing, panel: &Panel) -> Outcome {
    let mut chart = ChartBuilder::on(area)
        .caption(panel.title, ("sans-serif", 17))
        .margin(8)
        .x_label_area_size(34)
        .y_label_area_size(46)
        .build_cartesian_2d(0.0..1.15, (panel.low..panel.high).log_scale())?;
    chart.configure_mesh().x_desc("offered load / nominal capacity").light_line_style(WHITE).draw()?;
    for (index, group) in groups(panel.points).into_iter().enumerate() {
        let colour = Palette99::pick(index).to_rgba();
        let shown = |point: &&Point| point.group == group && point.case.load <= panel.up_to;
        let points = || panel.points.iter().filter(shown);
        let mut ours: Vec<(f64, f64)> = points().map(|point| (point.case.load, (panel.of)(&point.ours()))).collect();
        ours.sort_by(|a, b| a.0.total_cmp(&b.0));
        // A logarithmic scale has no place for "never".
        ours.retain(|(_, y)| *y >= panel.low);
        chart
            .draw_series(LineSeries::new(ours, colour.stroke_width(1)))?
            .label(group)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], colour.stroke_width(2)));
        let theirs = points().map(|point| (point.case.load, point.row.number(panel.column)));
        chart.draw_series(theirs.filter(|(_, y)| *y >= panel.low).map(|at| Circle::new(at, 3, colour)))?;
    }
    chart
        .configure_series_labels()
        .position(panel.legend.clone())
        .label_font(("sans-serif", 11))
        .background_style(WHITE.mix(0.8))
        .draw()?;
    Ok(())
}
